"""Where a run comes from: measured here, or reported from another machine and by whom, and whether it is trusted.

The one place that says so: for the API and exports in three members, for pages as a mark, for messages as a sentence.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from analysis.models import Run
from analysis.runs.queue.retry_policy import Cause
from engine.text.units import sentence_case

NOT_TRUSTED = (
    "Not trusted yet: left out of recommendations, baselines, trends, the matrix and reuse. "
    "A GPU manager can trust the token or the host that reported it."
)
_DOUBT = "not trusted by this lab"
NOT_VERIFIED = f"reported, {_DOUBT}"
"""The origin of a run that is not trusted, for people without an account: neither host nor person."""
NOT_VERIFIED_NOTE = (
    f"{NOT_VERIFIED.capitalize()}: another machine measured it. "
    "Its figures were only computed again here, from its own probes."
)
_NO_HOST, _HOST_IN_MESSAGES = re.compile(r"[^\w.-]", re.ASCII), 64
TRUSTED = "Trusted: its figures count like those measured here."


@dataclass(frozen=True, slots=True)
class Origin:
    """The three members beside a run's figures; None, empty and trusted for the portal's own runs."""

    origin: str | None = None
    reported_from: str = ""
    is_trusted: bool = True

    @classmethod
    def of(cls, run: Run) -> Origin:
        return cls(describe_origin(run), run.reported_from, run.is_trusted)

    @property
    def is_reported(self) -> bool:
        return bool(self.reported_from)

    @property
    def members(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def mark(self) -> str | None:
        """Write "not trusted by this lab, reported by alice from node7", the doubt first, as the end may be cut."""
        if not self.is_reported or self.is_trusted:
            return self.origin
        return f"{_DOUBT}, {self.origin}"

    @property
    def unnamed(self) -> Origin:
        """Return the same without the person, for what leaves the portal."""
        return replace(self, origin=origin_text(self.reported_from, None))

    @property
    def opening(self) -> str:
        """Write "Not trusted by this lab, reported from node7: ", with a long name cut; empty if measured here."""
        host = _NO_HOST.sub("_", self.reported_from)[:_HOST_IN_MESSAGES]
        mark = replace(self, origin=origin_text(host, None)).mark
        return f"{sentence_case(mark)}: " if mark else ""


@dataclass(frozen=True, slots=True)
class Executor:
    name: str
    after_silence: str
    after_interruption: tuple[str, ...]
    starting: str = ""  # empty where the kind of the run says it, as `why_interrupted`
    why_interrupted: str = ""


_SENDER = Executor(
    name="the machine that runs it",
    after_silence="the run is marked as interrupted",
    after_interruption=("If its sender has ended, send the run from its folder: memorymark sync FOLDER.",),
    starting="Waiting for the first event of the machine that runs it.",
    why_interrupted=(
        "Its sender went silent before the end; the run itself did not fail. "
        "It goes on here when the sender is heard from again, and its result finishes it."
    ),
)
_STOPPED_SENDER = replace(
    _SENDER,
    after_interruption=(
        "Start it again where it ran, with more time where its scheduler ended it: that is a new run here.",
    ),
    why_interrupted="It was stopped where it ran, before it had a result; the run itself did not fail.",
)
_WORKER = Executor(
    name="its worker",
    after_silence="another attempt starts",
    after_interruption=(
        "Check whether its host is up: the fleet page shows the last sign of life of each device.",
        "Then run it again with the same settings.",
    ),
)


def executor_of(run: Run) -> Executor:
    if run.error_code == Cause.STOPPED:
        return _STOPPED_SENDER
    return _SENDER if run.is_reported else _WORKER


UNKNOWN = dict.fromkeys(field.name for field in fields(Origin))
"""The members where there is no run: all null."""


def origin_members(run: Run) -> dict[str, Any]:
    return Origin.of(run).members


def origin_text(reported_from: str, person: str | None) -> str | None:
    """Write "reported by alice from node7"; None for a run of this portal's own workers."""
    if not reported_from:
        return None
    return f"reported by {person} from {reported_from}" if person else f"reported from {reported_from}"


def describe_origin(run: Run) -> str | None:
    return origin_text(run.reported_from, run.requested_by.get_username() if run.requested_by else None)


def origin_context(run: Run) -> dict[str, str | None]:
    """Return what the templates `origin` and `origin_note` need of a page about one run."""
    trust_text = TRUSTED if run.is_trusted else NOT_TRUSTED
    return {"origin": describe_origin(run), "trust_text": trust_text if run.is_reported else None}


def describe_clock(run: Run) -> str | None:
    """Say when the sender began, by its own clock, which orders nothing; None where it did not say."""
    report = getattr(run, "report", None) if run.is_reported else None
    if report is None or report.started_at is None:
        return None
    return f"began {report.started_at:%Y-%m-%d %H:%M} UTC by the clock of {run.reported_from}"
