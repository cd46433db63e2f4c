"""PURE: whether the sentences of a document are the engine's own, and say what its probes show.

What a run says of itself cannot be recomputed: that its time ended, or what its training was seen to do. So it may only
be said in the words in which the engine says it; pages repeat them, some as their headline.
"""

from __future__ import annotations

from ..build_result import METHOD
from ..results.result import Boundary, Outcome, Purpose
from ..results.speed_rounds import Stage
from ..search.boundary import OF_EARLIER_RUN
from ..spec import RunSpec
from ..speed.reasons import NOTHING_TO_COMPARE, OF_MODELS, OF_STARTS, PAIRS_ENDED
from ..text.wording import Text, error_name, is_one_of
from ..tune import alternating_starts
from ..tune.notes import LEARNED_SIZES, NOTES, PEAK, WHOLE_RUN
from ..tune.to_compare import sizes_to_compare
from .document import Claims

MOST_NOTES = 32


def is_possible_reason(claims: Claims, largest: int) -> bool:
    """Whether this can be why a run says nothing of speeds. Sentences of compared sizes are not: rounds show these."""
    reason = (claims.speed.reason if claims.speed else None) or ""
    if isinstance(claims.spec, RunSpec):
        return is_one_of(reason, OF_MODELS)
    if is_one_of(reason, NOTHING_TO_COMPARE):
        untimed = [p for p in claims.probes if p.purpose is not Purpose.TIMING]
        return reason == sizes_to_compare(claims.spec, claims.device, untimed, largest)
    if (ended := PAIRS_ENDED.read(reason)) is not None:
        pairs = sum(each.stage is Stage.EVALUATION for each in claims.speed_rounds)
        return reason == PAIRS_ENDED.write(count=pairs, least_count=ended["least_count"])
    return is_one_of(reason, OF_STARTS)


def method_of(claims: Claims) -> Text:
    """Return how the speeds of such a run are measured."""
    return METHOD if isinstance(claims.spec, RunSpec) else alternating_starts.METHOD


def are_possible_notes(claimed: Boundary, possible: Boundary, claims: Claims) -> bool:
    """Whether a note holds all that the probes show, and beyond it only what a run may say of itself."""
    given = claimed.note.split("; ") if claimed.note else []
    shown = possible.note.split("; ") if possible.note else []
    more = [each for each in given if each not in shown]
    is_whole = {*shown} <= {*given} and len(given) == len({*given}) <= MOST_NOTES
    learned = sum(LEARNED_SIZES.read(each) is not None for each in more)
    if not isinstance(claims.spec, RunSpec) and claims.spec.sizes is None:
        is_whole = is_whole and learned == (claimed.allowed_sizes is not None)
    return is_whole and all(_is_possible_note(each, claims) for each in more)


def _is_possible_note(note: str, claims: Claims) -> bool:
    if claims.training is None:
        return note == OF_EARLIER_RUN
    if PEAK.read(note) is not None:
        return note == claims.training.peak
    if (learned := LEARNED_SIZES.read(note)) is not None:
        failed = {str(p.batch_size): error_name(p.error_type) for p in claims.probes if p.outcome is Outcome.ERROR}
        sizes, errors = ({*learned[name].split(" and ")} for name in ("failed_sizes", "errors"))
        is_shown = sizes <= failed.keys() and errors <= {*failed.values()}
        return is_shown and learned["rule"] == claims.boundary.allowed_sizes
    return is_one_of(note.removeprefix(WHOLE_RUN), NOTES)
