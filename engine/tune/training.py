"""What a tuned training consumed: the part of a result that a model of the catalogue does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Training:
    """What a result of a command says beside the figures of any run: what a step of the largest size consumes.

    `rank_peaks_bytes` has the peak of each rank; the worst one decides. `starts` are the batch sizes in their order
    with the seconds of each; `changed_files` is what they wrote below the folder they were started in. `peak` says what
    the peak of the largest size was in; `whole_run` what a whole run saw of the data and the script.
    """

    micro_batches: int
    ranks: int
    rank_peaks_bytes: tuple[int, ...]
    tokens_per_step: int | None
    waiting_for_data_fraction: float | None
    starts: tuple[tuple[int, float], ...]
    changed_files: tuple[str, ...]
    peak: str | None = None
    whole_run: Mapping[str, Any] | None = None
