"""MemoryMark's engine: measures training steps, finds the batch-size boundary, and answers in figures.

Knows PyTorch (in the worker process only) and nothing of Django. Importing this package loads no torch.
"""

from engine.catalog import WORKLOADS, Workload, workload_ids
from engine.errors import DeviceUnavailable, EngineError, SpecError, WeightsUnavailable, WorkerFailed, WorkloadFailed
from engine.known import Known
from engine.result import Boundary, DeviceFacts, Outcome, Point, Probe, Purpose, Reason, RunResult
from engine.runner import measure
from engine.spec import SCHEMA, RunSpec
from engine.units import format_bytes, parse_bytes

__all__ = [
    "SCHEMA",
    "WORKLOADS",
    "Boundary",
    "DeviceFacts",
    "DeviceUnavailable",
    "EngineError",
    "Known",
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
