"""The last part of a run: what filled the memory when a size was refused, found out in a process of its own.

It changes nothing that was measured, and a failure of it does not fail the run: it is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .errors import EngineError, TimeIsUp
from .memory_breakdown import MemoryBreakdown, describe
from .progress import Progress
from .result import Boundary, Outcome, Probe
from .search.does_not_fit import refusing_probe
from .spec import MEMORY_STEPS
from .worker.prober import Prober


def size_to_explain(boundary: Boundary, probes: Sequence[Probe], *, is_search: bool) -> int | None:
    """Return the size that memory refused; of a search where it refused none, the largest that trained."""
    refusal = refusing_probe(probes, boundary.refused_batch_size)
    if refusal is not None and refusal.outcome is Outcome.OUT_OF_MEMORY:
        return refusal.batch_size
    return (boundary.largest_batch_size or None) if is_search else None


def explain(
    worker: Prober,
    batch_size: int | None,
    *,
    seconds_left: float,
    progress: Progress,
    log: Callable[[str, str], None],
) -> MemoryBreakdown | None:
    """Have the size run once more and return what filled the memory; None, with the reason in the log, if unknown."""
    if batch_size is None:
        return None
    try:
        if seconds_left <= 0:
            raise TimeIsUp("the time budget is spent")
        found = worker.explain(batch_size, steps=MEMORY_STEPS, seconds=seconds_left, progress=progress)
    except (EngineError, TimeIsUp) as exc:
        log(f"what filled the memory was not found out: {exc}", "warning")
        return None
    if found is None:
        log(
            "what filled the memory is not known: the model is compiled or did not fit, or its device reports nothing",
            "info",
        )
    else:
        log(describe(found), "info")
    return found
