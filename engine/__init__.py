"""MemoryMark's engine: measures training steps, finds the batch-size boundary, and answers in figures.

Knows PyTorch (in the worker process only) and nothing of Django. Importing this package loads no torch.
"""

from .catalog import WORKLOADS, Workload, workload_ids
from .errors import DeviceUnavailable, EngineError, SpecError, WeightsUnavailable, WorkerFailed, WorkloadFailed
from .result import Boundary, DeviceFacts, Outcome, Point, Probe, Purpose, Reason, RunResult
from .resume import EarlierAttempt
from .runner import measure
from .spec import SCHEMA, RunSpec
from .units import format_bytes, parse_bytes

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
