"""The last phase of a run: a separate process finds what filled the memory at a refusal; failures are only logged."""

from __future__ import annotations

from collections.abc import Sequence

from .describe.does_not_fit import refusing_probe
from .errors import EngineError, TimeIsUp
from .execution import Execution
from .progress import Progress
from .results.memory_breakdown import MemoryBreakdown, describe
from .results.result import Boundary, Outcome, Probe
from .spec import MEMORY_STEPS
from .worker.handle import WorkerHandle


def size_to_explain(boundary: Boundary, probes: Sequence[Probe], *, is_search: bool) -> int | None:
    """Return the size refused for memory; for a search without such a refusal, the largest that trained."""
    refusal = refusing_probe(probes, boundary.refused_batch_size)
    if refusal is not None and refusal.outcome is Outcome.OUT_OF_MEMORY:
        return refusal.batch_size
    return (boundary.largest_batch_size or None) if is_search else None


def explain(
    worker: WorkerHandle, batch_size: int | None, execution: Execution, progress: Progress
) -> MemoryBreakdown | None:
    """Run the size once more and return what filled the memory; None, with the reason in the log, if unknown."""
    if batch_size is None:
        return None
    try:
        execution.check_deadline()
        found = worker.explain(batch_size, steps=MEMORY_STEPS, seconds=execution.seconds_left, progress=progress)
    except (EngineError, TimeIsUp) as exc:
        execution.log(f"what filled the memory was not found out: {exc}", "warning")
        return None
    if found is None:
        execution.log(
            "what filled the memory is not known: the model is compiled or did not fit, or its device reports nothing"
        )
    else:
        execution.log(describe(found))
    return found
