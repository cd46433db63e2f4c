"""PURE: checks every claim of a measurement or a tuned command against its probes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from ..build_result import answer
from ..estimate.prior import error_of
from ..results.result import Boundary, RunResult
from ..results.speed_rounds import SpeedClaim
from ..speed.comparison import Comparison
from ..text.wording import is_one_of
from .boundary import are_possible_notes, claimed_of, has_claimed_figures, possible_boundaries
from .claims import Claims
from .contradiction import Contradiction, differences
from .physics import impossible_figures
from .speed import compare_again

_FIGURES = (
    *("largest", "fastest", "recommended", "current", "waste", "speedup", "speedup_low", "speedup_high"),
    *("largest_with_reserve", "batch_size_ratio", "savings", "estimate_error"),
)
_MAY_LACK = ("speedup_low", "speedup_high", "largest_with_reserve")
"""Newer than the first results. Where they are there, they must be as recomputed: a page shows half a claim as one."""
_VERDICT = ("is_measurable", "reason", "recommended_by", "reserve_fraction", "rounds", "quiet_rounds", "confidence")


def contradictions_of_result(kind: type[Claims], document: Mapping[str, Any]) -> list[Contradiction]:
    """List what a document claims beyond its probes. Raises SpecError for one that is malformed."""
    claims = kind.read(document)
    impossible = [*impossible_figures(claims)]
    if impossible:
        return [*claims.untrue, *impossible]  # with impossible figures nothing else can be checked
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
        environment=claims.environment,
        timings=claims.timings,
    )
    if claims.predicted is not None:
        result = replace(result, estimate_error=error_of(claims.predicted, result))
    return [
        *claims.untrue,
        *_untrue_boundary(claims, boundary),
        *wrong,
        *_untrue_figures(claims, result),
        *_untrue_verdict(claims, result, earlier_reason=comparison.reason),
        *_untrue_breakdown(claims, boundary),
        *claims.untrue_training(),
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
    for name in _FIGURES:
        if name in claims.given or name not in _MAY_LACK:
            claimed, recomputed = (_plain(getattr(each, name)) for each in (claims, result))
            yield from differences(name, claimed, recomputed, may_claim_less=False)


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _untrue_verdict(claims: Claims, result: RunResult, *, earlier_reason: str | None) -> Iterator[Contradiction]:
    """Yield claims about the reliability of speeds that do not hold. Earlier builds gave each reason with a ratio."""
    if claims.speed is None:
        return
    assert result.speed is not None
    speed = result.speed
    if claims.speed.reason == earlier_reason:
        speed = replace(speed, reason=earlier_reason)
    for name in _VERDICT:
        yield from differences(f"speed.{name}", getattr(claims.speed, name), getattr(speed, name))
    of_earlier_builds = SpeedClaim.FIGURE if claims.speed.is_measurable else SpeedClaim.NOTHING
    claim = claims.speed.claim or of_earlier_builds
    yield from differences("speed.claim", claim, speed.claim, may_claim_less=False)
    if claims.speed.method is not None and not is_one_of(claims.speed.method, [claims.method]):
        yield Contradiction("speed.method", claims.speed.method, str(claims.method))
    if (claims.speed.reason is None) is not claims.speed.is_measurable:
        yield Contradiction("speed.reason", claims.speed.reason, speed.reason)


def _untrue_breakdown(claims: Claims, boundary: Boundary) -> Iterator[Contradiction]:
    if claims.memory_breakdown is None:
        return
    if claims.memory_breakdown.batch_size != (size := claims.explained_size(boundary)):
        yield Contradiction("memory_breakdown.batch_size", claims.memory_breakdown.batch_size, size)
