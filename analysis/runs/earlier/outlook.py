"""What is known of a run before it is requested: the size that earlier runs found, how long it takes, who waits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Q

from analysis.models import Device, MatrixCell, Run
from analysis.runs.columns.matrix_cells import ESTIMATED, key_of
from analysis.runs.columns.series import SeriesKey
from analysis.runs.gpu_catalog import gpu_of
from analysis.runs.queue.forecast import runs_like, seconds_of, typical_seconds
from engine.settings.spec import RunSpec


@dataclass(frozen=True, slots=True)
class KnownSize:
    batch_size: int
    run_id: int
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect of a measurement; None: unknown."""

    size: KnownSize | None
    seconds: float | None
    is_of_same_settings: bool
    """Whether `seconds` is of runs of the same settings; else of the model's newest runs, or of any."""


def outlook(spec: RunSpec, devices: Iterable[Device]) -> Outlook:
    """Read what the portal knows of this training on these devices: columns alone, no result and no engine."""
    offered = list(devices)
    rows = [row for name in dict.fromkeys(device.name for device in offered) for row in runs_like(spec.to_dict(), name)]
    measured = next(
        (KnownSize(row.largest_batch_size, row.pk, True) for row in rows if row.largest_batch_size and row.certified),
        None,
    )
    took = seconds_of(rows)
    size = measured or _estimated(spec, offered)
    if took is not None:
        return Outlook(size, took, True)
    of_model = typical_seconds(SeriesKey.of_run(spec.to_dict(), "").model_of_runs)
    if spec.ranks > 1:  # each size takes starts of all ranks: runs on one device say nothing of it
        return Outlook(size, of_model, False)
    return Outlook(size, of_model or typical_seconds(), False)


def waiting_for(devices: Sequence[Device]) -> int:
    kinds = {device.kind for device in devices}
    wanted = Q(requested_device__in=devices) | Q(requested_device=None, requested_kind__in=kinds)
    return Run.objects.on_devices().queued().filter(wanted, cancel_requested=False).count()


def _estimated(spec: RunSpec, devices: Iterable[Device]) -> KnownSize | None:
    cards = {gpu.id for device in devices if (gpu := gpu_of(device)) is not None}
    if not cards or spec.memory_limit_bytes is not None:
        return None
    same = key_of(spec.to_dict(), spec.workload)
    cells = MatrixCell.objects.filter(kind=ESTIMATED, card__in=cards, run__deleted_at=None, **same)
    cell = cells.order_by("-answered_at").first()
    return KnownSize(cell.largest_batch_size, cell.run_id, False) if cell and cell.largest_batch_size else None
