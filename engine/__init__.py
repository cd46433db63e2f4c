"""MemoryMark's engine: measures training steps, finds the batch-size boundary, and answers in figures.

Knows nothing of Django, and PyTorch in the worker process only. Names load when they are first used: all of them take
a quarter of a second, and the command line shows its first line before.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .catalog import WORKLOADS, Workload, workload_ids
    from .errors import DeviceUnavailable, EngineError, SpecError, WeightsUnavailable, WorkerFailed, WorkloadFailed
    from .results.result import Boundary, DeviceFacts, Outcome, Point, Probe, Purpose, Reason, RunResult
    from .resume import EarlierAttempt
    from .runner import measure
    from .spec import SCHEMA, RunSpec
    from .text.units import format_bytes, parse_bytes

__version__ = "0.5.0"
"""The one place of it: CHANGELOG, `--version`, `/health`, the API and the pages are held to it by a test."""

__all__ = [
    "SCHEMA",
    "WORKLOADS",
    "Boundary",
    "DeviceFacts",
    "DeviceUnavailable",
    "EngineError",
    "EarlierAttempt",
    "Outcome",
    "Point",
    "Probe",
    "Purpose",
    "Reason",
    "RunResult",
    "RunSpec",
    "SpecError",
    "WeightsUnavailable",
    "WorkerFailed",
    "Workload",
    "WorkloadFailed",
    "format_bytes",
    "measure",
    "parse_bytes",
    "workload_ids",
]

_MODULES = {
    "catalog": ("WORKLOADS", "Workload", "workload_ids"),
    "errors": ("DeviceUnavailable", "EngineError", "SpecError", "WeightsUnavailable", "WorkerFailed", "WorkloadFailed"),
    "results.result": ("Boundary", "DeviceFacts", "Outcome", "Point", "Probe", "Purpose", "Reason", "RunResult"),
    "resume": ("EarlierAttempt",),
    "runner": ("measure",),
    "spec": ("SCHEMA", "RunSpec"),
    "text.units": ("format_bytes", "parse_bytes"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
