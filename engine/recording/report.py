"""PURE: the report of a recorded training: what it used, what lay idle, whether it lasts, and why it ended."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..deaths.cause import Death
from ..deaths.words import document as death_document
from .ended import death_of
from .growth import Growth, growth_of
from .recording import Process, Recording

ROOM = 0.95
"""The share of a card that the estimated batch size may take."""
SAME_PEAK = 0.98
"""From this share of the whole run's peak on that of the training steps is the same."""
NOTHING_SEEN = Process(0, 0.0, 0.0, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known of a recorded training; None: not known. Sizes in bytes."""

    process: Process
    device: str | None = None
    total_bytes: int | None = None
    """What the card has; None on a CPU, whose peak is that of the whole process."""
    fitting_batch_size: int | None = None
    """Estimated from the run's own peak."""
    growth: Growth | None = None
    host_growth: Growth | None = None
    """That of the host's memory, of a training on a card."""
    death: Death | None = None

    @property
    def unused_bytes(self) -> int | None:
        """What of the card's memory was never used."""
        if self.total_bytes is None or self.process.peak_bytes is None:
            return None
        return self.total_bytes - self.process.peak_bytes

    @property
    def waiting_fraction(self) -> float | None:
        seconds = self.process.seconds
        return min(1.0, self.process.loading_seconds / seconds) if seconds else None

    @property
    def evaluated_peak(self) -> bool:
        """Whether the peak came in an evaluation."""
        peak = self.process.peak_bytes or 0
        return 0 < (self.process.training_peak_bytes or 0) < SAME_PEAK * peak


def report_of(recording: Recording) -> Report:
    process, device = recording.process, recording.device
    if process is None or device is None:
        return Report(process=NOTHING_SEEN, death=death_of(recording))
    peak = process.peak_bytes or 0
    total = None if device.kind == "cpu" else device.capacity_bytes
    growth = growth_of(process.samples, total - peak if total else recording.free_bytes)
    host_growth = growth_of(process.host_samples, recording.free_bytes)
    return Report(
        process=process,
        device=device.name,
        total_bytes=total,
        fitting_batch_size=None if total is None else _fitting(process, total),
        growth=growth,
        host_growth=host_growth,
        death=death_of(recording, growth, host_growth),
    )


def _fitting(process: Process, total: int) -> int | None:
    """Return the batch size that the card may take, as the peak beyond what a step leaves grows with the batch."""
    peak = process.training_peak_bytes or process.peak_bytes
    size, samples = process.batch_size, process.samples
    if not (peak and size and samples) or process.death is not None:
        return None
    held = min(each[2] for each in samples[1:] or samples)
    each_bytes = (peak - held) / size
    return max(1, int((ROOM * total - held) / each_bytes)) if each_bytes > 0 else None


def document(report: Report, status: int) -> dict[str, Any]:
    """Return it as JSON."""
    process = report.process
    return {
        "exit_status": status,
        "steps": process.steps,
        "seconds": process.seconds,
        "step_seconds": process.seconds / (process.steps - 1) if process.steps > 1 else None,
        "device": report.device,
        "total_bytes": report.total_bytes,
        "peak_bytes": process.peak_bytes,
        "training_peak_bytes": process.training_peak_bytes,
        "shares": process.shares and asdict(process.shares),
        "waiting_fraction": report.waiting_fraction,
        "batch_size": process.batch_size,
        "estimated_fitting_batch_size": report.fitting_batch_size,
        "growth": _growth_document(report.growth),
        "host_growth": _growth_document(report.host_growth),
        "piled_up": process.piled_up and asdict(process.piled_up),
        "death": report.death and death_document(report.death),
    }


def _growth_document(growth: Growth | None) -> dict[str, Any] | None:
    if growth is None:
        return None
    return {"bytes_per_step": growth.bytes_per_step, "low": growth.low, "high": growth.high, "ends_at": growth.ends_at}
