"""PURE: a result document of another machine -> its facts, and the answer that they give here; the rest is ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from analysis.models import Run
from analysis.models.text import MARK
from analysis.runs.columns.result_columns import check_columns
from analysis.runs.kinds import BY_KIND
from engine.errors import SpecError
from engine.facts.result_file import result_in
from engine.questions.answers import FIRST_VERSION, Impossible, ImpossibleFiguresError
from engine.questions.documents.stored import MALFORMED
from engine.questions.kinds import KINDS, RunKind, Spec, answer, asked, kind_of
from engine.report.protocol import RUN_KEY

REPORTED_KINDS = tuple(kind.value for kind in RunKind if asked(kind).is_reported)
"""What can be reported. A command, or a function, is a measurement of the portal, too; its spec has other fields."""
HOST_LENGTH: int = Run._meta.get_field("reported_from").max_length or 0
_LONGEST_SECONDS = 366 * 86_400.0


@dataclass(frozen=True, slots=True)
class ReportedDocument:
    found: Any
    run_key: str
    host: str
    started_at: datetime
    spec: Spec
    columns: Mapping[str, Any]
    environment: Mapping[str, Any]


class ImpossibleDocumentError(Exception):
    """The document holds figures that no machine can have measured."""

    def __init__(self, run_key: str, host: str, found: Sequence[Impossible]) -> None:
        super().__init__(run_key)
        self.run_key, self.host, self.found = run_key, host, found


def read_document(body: object) -> ReportedDocument:
    """Read a result file, or a result alone. Raises SpecError, naming the fault, and ImpossibleDocumentError."""
    given = result_in(body, "result")
    environment, spec = _object(given.get("environment"), "environment"), _object(given.get("spec"), "spec")
    _refuse_too_old(environment)
    run_key = checked_run_key(environment.get("run_key"), "environment.run_key")
    host = checked_host(environment.get("host"), "environment.host")
    try:
        found: Any = answer(given)
        kind = kind_of(given)
        rules = BY_KIND[kind]
        columns = {**rules.columns(found), "device_count": rules.devices_used(found)}
        check_columns(Run, columns)
    except ImpossibleFiguresError as exc:
        raise ImpossibleDocumentError(run_key, host, exc.found) from exc
    except MALFORMED as exc:
        raise SpecError("result", f"is no result that this portal can read: {exc!r}"[:500]) from exc
    if not 0 <= found.total_seconds <= _LONGEST_SECONDS:
        raise SpecError("timings.total_seconds", f"must be from 0 to {_LONGEST_SECONDS:,.0f}")
    return ReportedDocument(
        found=found,
        run_key=run_key,
        host=host,
        started_at=_moment(environment.get("started_at"), "environment.started_at"),
        spec=read_spec(kind, {**spec, "device": found.device.device}),
        columns={**columns, "reported_from": host},
        environment=environment,
    )


def read_spec(kind: str, spec: Mapping[str, Any]) -> Spec:
    """Read the spec of a report, as the engine writes it. Raises SpecError, naming the field."""
    return KINDS[kind].read_spec(dict(spec))


def checked_run_key(value: object, field: str = "run_key") -> str:
    """Return the key. Raises SpecError for a malformed key: a short one could be guessed, and be another's."""
    if not isinstance(value, str) or not RUN_KEY.fullmatch(value):
        raise SpecError(field, "must be 32 small hexadecimal digits, drawn when the run started")
    return value


def checked_host(value: object, field: str = "host") -> str:
    """Return a host's name. Raises SpecError where it cannot be shown."""
    is_name = isinstance(value, str) and 0 < len(value) <= HOST_LENGTH and value.strip() == value
    # a mark stands where the text had what cannot be stored: two names that differ only there would be one
    if not isinstance(value, str) or not is_name or MARK in value or not value.isprintable():
        raise SpecError(field, f"must be the name of a host, of at most {HOST_LENGTH} printable characters")
    return value


def _refuse_too_old(environment: Mapping[str, Any]) -> None:
    """Raise SpecError for a document of an engine that drew no run key: it holds too little to be computed again."""
    if "run_key" not in environment:
        raise SpecError(
            "environment.run_key",
            f"is missing: the engine that wrote this is too old, its figures cannot be computed again; "
            f"measure again with MemoryMark {FIRST_VERSION} or later",
        )


def _object(value: object, field: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SpecError(field or "result", "must be a JSON object")
    return value


def _moment(value: object, field: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        stored = None if moment is None or moment.utcoffset() is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # in UTC it may be before the year 1 or after 9999
        stored = None
    if stored is None:
        raise SpecError(field, "must be a moment with its offset from UTC, such as 2026-11-23T04:00:00+00:00")
    return stored
