"""Where a run comes from: measured here, or reported from another machine and by whom."""

from __future__ import annotations

from analysis.models import Run

NOT_TRUSTED = (
    "Not trusted yet: left out of recommendations, baselines, trends, the matrix and reuse. "
    "A GPU manager can trust the token or the host that reported it."
)
NOT_VERIFIED = "reported, not verified by this lab"
"""The origin of a run that is not trusted, for people without an account: neither host nor person."""
NOT_VERIFIED_NOTE = (
    f"{NOT_VERIFIED.capitalize()}: another machine measured it. "
    "Its figures were only computed again here, from its own probes."
)
TRUSTED = "Trusted: its figures count like those measured here."


def origin_text(reported_from: str, person: str | None) -> str | None:
    """Write "reported by alice from node7"; None for a run of this portal's own workers."""
    if not reported_from:
        return None
    return f"reported by {person} from {reported_from}" if person else f"reported from {reported_from}"


def describe_origin(run: Run) -> str | None:
    """Write where the run comes from; None where that is this portal."""
    return origin_text(run.reported_from, run.requested_by.get_username() if run.requested_by else None)


def describe_trust(run: Run) -> str | None:
    """Say whether the figures of a reported run count; None for any other."""
    if not run.is_reported:
        return None
    return TRUSTED if run.is_trusted else NOT_TRUSTED


def describe_clock(run: Run) -> str | None:
    """Say when the sender began by its own clock, which nothing is ordered by; None where it did not say."""
    report = getattr(run, "report", None) if run.is_reported else None
    if report is None or report.started_at is None:
        return None
    return f"began {report.started_at:%Y-%m-%d %H:%M} UTC by the clock of {run.reported_from}"
