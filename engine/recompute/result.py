"""PURE: checks every claim of a measurement or a tuned command against its probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from ..breakdown_run import size_to_explain
from ..build_result import answer
from ..estimate.prior import error_of
from ..results.figure_kinds import FIGURE_KINDS
from ..results.result import Boundary, RunResult
from ..results.speed_rounds import SpeedClaim
from ..spec import RunSpec
from ..speed.comparison import Comparison
from ..text.wording import is_one_of
from .boundary import claimed_of, has_claimed_figures, possible_boundaries
from .contradiction import Contradiction, differences
from .document import Claims, read_claims
from .physics import impossible_figures
from .speed import compare_again
from .training import untrue_training
from .words import are_possible_notes, method_of

_FIGURES = (
    *("largest", "fastest", "recommended", "current", "waste", "speedup", "speedup_low", "speedup_high"),
    *("largest_with_reserve", "batch_size_ratio", "savings", "estimate_error", "fits"),
)
_MAY_LACK = ("speedup_low", "speedup_high", "largest_with_reserve", "fits")
"""Newer than the first results. Where they are there, they must be as recomputed: a page shows half a claim as one."""
_VERDICT = ("is_measurable", "reason", "recommended_by", "reserve_fraction", "rounds", "quiet_rounds", "confidence")


def contradictions_of_result(document: Mapping[str, Any]) -> list[Contradiction]:
    """List what a document claims beyond its probes. Raises SpecError for one that is malformed."""
    claims = read_claims(document)
    impossible = [*impossible_figures(claims)]
    if impossible:
        return impossible  # with impossible figures nothing else can be checked
    boundary = claimed_of(claims, possible_boundaries(claims))
    comparison, wrong = compare_again(claims, boundary)
    if claims.speed is None:  # whoever says nothing of speeds claims no size, speed-up or saving by them
        comparison = Comparison(reason=comparison.reason)
    claimed = replace(boundary, certified=boundary.certified and claims.boundary.certified)
    result = answer(
        claims.spec,
        claims.device,
        claimed,
        claims.probes,
        comparison,
        environment=dict(document["environment"]),
        timings=claims.timings,
    )
    if claims.estimate is not None:
        result = replace(result, estimate=document["estimate"], estimate_error=error_of(claims.estimate, result))
    return [
        *_untrue_boundary(claims, boundary),
        *wrong,
        *_untrue_figures(claims, result),
        *_untrue_verdict(claims, result),
        *_untrue_breakdown(claims, boundary),
        *untrue_training(claims),
    ]


def _untrue_boundary(claims: Claims, boundary: Boundary) -> Iterator[Contradiction]:
    if not are_possible_notes(claims.boundary, boundary, claims):
        yield Contradiction("boundary.note", claims.boundary.note, boundary.note)
    if has_claimed_figures(claims.boundary, boundary):
        return
    for name, recomputed in asdict(boundary).items():
        claimed = getattr(claims.boundary, name)
        if name != "note" and (name != "certified" or claimed):
            yield from differences(f"boundary.{name}", claimed, recomputed, may_claim_less=False)


def _untrue_figures(claims: Claims, result: RunResult) -> Iterator[Contradiction]:
    recomputed = {**asdict(replace(result, spec=None, probes=())), "fits": result.fits}  # type: ignore[arg-type]
    for name in _FIGURES:
        if name in claims.raw or name not in _MAY_LACK:
            yield from differences(name, claims.raw.get(name), recomputed[name], may_claim_less=False)
    kinds = claims.raw.get("kinds") or {}
    for name, kind in kinds.items():
        if FIGURE_KINDS.get(name) != kind:
            yield Contradiction(f"kinds.{name}", kind, FIGURE_KINDS.get(name))


def _untrue_verdict(claims: Claims, result: RunResult) -> Iterator[Contradiction]:
    """Yield claims about the reliability of speeds that do not hold."""
    if claims.speed is None:
        return
    assert result.speed is not None
    for name in _VERDICT:
        yield from differences(f"speed.{name}", getattr(claims.speed, name), getattr(result.speed, name))
    of_earlier_builds = SpeedClaim.FIGURE if claims.speed.is_measurable else SpeedClaim.NOTHING
    claim = claims.speed.claim or of_earlier_builds
    yield from differences("speed.claim", claim, result.speed.claim, may_claim_less=False)
    if claims.speed.method is not None and not is_one_of(claims.speed.method, [method := method_of(claims)]):
        yield Contradiction("speed.method", claims.speed.method, str(method))
    if (claims.speed.reason is None) is not claims.speed.is_measurable:
        yield Contradiction("speed.reason", claims.speed.reason, result.speed.reason)


def _untrue_breakdown(claims: Claims, boundary: Boundary) -> Iterator[Contradiction]:
    if claims.memory_breakdown is None or not isinstance(claims.spec, RunSpec):
        return
    size = size_to_explain(boundary, claims.probes, is_search=claims.spec.check_batch_size is None)
    if claims.memory_breakdown.batch_size != size:
        yield Contradiction("memory_breakdown.batch_size", claims.memory_breakdown.batch_size, size)
