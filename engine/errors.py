"""What can go wrong in the engine, as one tree: each kind has a code, for programs, and an exit status.

An out-of-memory is not an error here: it is the outcome of a probe. Errors are passed between processes by
``to_dict()`` and ``from_dict()``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class TimeIsUp(Exception):
    """The deadline passed before the work was done. This is no failure: the run ends with what it knows."""


class EngineError(Exception):
    """Base of the tree. ``code`` is stable and machine-readable, the text is for people."""

    code = "engine_error"
    exit_status = 1
    field: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "field": self.field,
            "message": str(self),
            "exit_status": self.exit_status,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> EngineError:
        """Rebuild the error another process reported; an unknown code becomes an EngineError."""
        kind = next((k for k in _below(cls) if k.code == data.get("code")), cls)
        message = str(data.get("message") or "no message")
        error = kind.__new__(kind)
        Exception.__init__(error, message)
        error.field = data.get("field")
        return error


class SpecError(EngineError):
    """A field of the spec has a value that is not allowed. Nothing was run."""

    code = "bad_spec"
    exit_status = 2

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field

    @property
    def reason(self) -> str:
        """What is wrong, without the field's name before it."""
        return str(self).removeprefix(f"{self.field}: ")


class DeviceUnavailable(EngineError):
    """The requested device does not exist on this machine, or this torch cannot use it."""

    code = "device_unavailable"
    exit_status = 4
    field = "device"


class DeviceBusy(EngineError):
    """Another process works on the device; the text says which."""

    code = "device_busy"
    exit_status = 4
    field = "device"


class WeightsUnavailable(EngineError):
    """Pretrained weights were requested and cannot be loaded (no network, no cache, no such model)."""

    code = "weights_unavailable"
    exit_status = 6
    field = "pretrained"


class EstimateImpossible(EngineError):
    """The spec cannot be estimated without a device; the text says why, and advises to measure it."""

    code = "estimate_impossible"
    exit_status = 7


class CommandUntunable(EngineError):
    """A training command cannot be tuned; `code` says why, the text what was seen."""

    code = "command_untunable"
    exit_status = 9
    field = "command"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class WorkloadFailed(EngineError):
    """A training step raised something that is neither out-of-memory nor a size limit."""

    code = "workload_failed"


class NoScratch(EngineError):
    """The folder for temporary files takes none: it is full, or files are limited."""

    code = "no_scratch"


class WorkerFailed(EngineError):
    """The worker process ended, stopped answering, or broke the protocol."""

    code = "worker_failed"
    status: int | None = None
    """The exit status of the process, negative for a signal; None where it is not known."""


class WorkerDied(WorkerFailed):
    """A signal ended the process that runs torch. The spec may not be the cause: the caller may try again."""

    code = "engine_worker_died"


def _below(kind: type[EngineError]) -> Iterator[type[EngineError]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _below(sub)
