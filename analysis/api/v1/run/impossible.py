"""The answer to a result document with figures that no machine can have measured, and its entry in the audit log.

Both name the first fields and how many there are, and cut values: a document may have thousands of any length.
"""

from __future__ import annotations

import json
import re
from typing import Any

from analysis.audit.record import record
from analysis.http.problem_details import Problem, part, pointer_to
from analysis.runs.reported.document import ImpossibleDocumentError

_FIELDS_SHOWN, _FIELD_LENGTH, _VALUE_LENGTH = 10, 200, 200


def impossible(refused: ImpossibleDocumentError, sha256: str) -> Problem:
    """Record that the document is refused, and return the answer."""
    count, shown = len(refused.found), refused.found[:_FIELDS_SHOWN]
    fields = [each.field[:_FIELD_LENGTH] for each in shown]
    facts = {"host": refused.host, "sha256": sha256, "fields": fields, "impossible_fields": count}
    record("run.report_refuse", target=("report", refused.run_key), after=facts)
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    detail = f"No machine can have measured: {'; '.join(fields)}{more}. Nothing was stored."
    errors = []
    for found, field in zip(shown, fields, strict=True):
        claimed, allowed = _cut(found.claimed), _cut(found.allowed)
        pointer = pointer_to(*filter(None, re.split(r"[.\[\]]+", field)))  # for a field such as probes[3].steps
        place = part(pointer, f"is {claimed!r}, the rest of the document allows {allowed!r}")
        errors.append({**place, "field": field, "claimed": claimed, "allowed": allowed})
    return Problem(422, detail=detail, code="impossible", errors=errors, members={"impossible_fields": count})


def _cut(value: Any) -> Any:
    """Return a value as it is, or the beginning of its JSON where that is long."""
    text = json.dumps(value, default=str)
    return value if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]} ... ({len(text)} characters)"
