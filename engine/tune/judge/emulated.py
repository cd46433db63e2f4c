"""PURE: what starts that stood in for single ranks do not show, and what ends a run because of that."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...errors import CommandUntunable
from ...text.masking import masked_text
from .reading import Reading

REFUSED = "NotEmulated"
"""The type of the error with which the hook refuses what it cannot emulate."""

OWN_RANKS = (
    "the script starts its ranks itself: only a launcher (torchrun, accelerate launch), torch.multiprocessing.spawn "
    "and the ranks of Lightning become one process; start it by torchrun"
)

OTHER_GPU = (
    "the script chooses its GPU by another number than LOCAL_RANK, and there is none of that number here: a rank is "
    "emulated on the first one"
)


def check_emulated(readings: Sequence[Reading], emulated: Collection[int]) -> None:
    """Raise CommandUntunable where a training was refused, or never joined the group that it was emulated in."""
    if not emulated:
        return
    refused = next((r for r in readings if r.has_failed and r.data["error_type"] == REFUSED), None)
    if refused is not None:
        raise CommandUntunable("cannot_emulate", masked_text(refused.data["error_message"] or ""))
    if any(r.has_failed and "invalid device ordinal" in (r.data["error_message"] or "") for r in readings):
        raise CommandUntunable("cannot_emulate", OTHER_GPU)
    if any(r.is_done and not r.data.get("has_group") for r in readings):
        raise CommandUntunable(
            "no_process_group",
            "the training never called torch.distributed.init_process_group: it has no ranks to emulate; leave out "
            "--emulate-ranks, or start it as its launcher does",
        )
