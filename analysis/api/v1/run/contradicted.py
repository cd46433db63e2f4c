"""The answer to a result document that claims what its probes do not show, and its entry in the audit log.

Both name the first fields and how many there are, and cut values: a document may have thousands of any length.
"""

from __future__ import annotations

import json
import re
from typing import Any

from analysis.audit.record import record
from analysis.http.problem_details import Problem, part, pointer_to
from analysis.runs.reported.document import NAME_LENGTH, ReportedDocument

_FIELDS_SHOWN, _VALUE_LENGTH = 10, 200


def contradicted(document: ReportedDocument, sha256: str) -> Problem:
    """Record that the document is refused, and return the answer."""
    count, shown = len(document.contradictions), document.contradictions[:_FIELDS_SHOWN]
    fields = [each.field[:NAME_LENGTH] for each in shown]
    facts = {"host": document.host, "sha256": sha256, "fields": fields, "contradicted_fields": count}
    record("run.report_refuse", target=("report", document.run_key), after=facts)
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    detail = (
        f"The document claims what its own measurements do not show: {'; '.join(fields)}{more}. Nothing was stored."
    )
    errors = []
    for found, field in zip(shown, fields, strict=True):
        claimed, recomputed = _cut(found.claimed), _cut(found.recomputed)
        pointer = pointer_to(*filter(None, re.split(r"[.\[\]]+", field)))  # for a field such as probes[3].steps
        place = part(pointer, f"claims {claimed!r}, its probes show {recomputed!r}")
        errors.append({**place, "field": field, "claimed": claimed, "recomputed": recomputed})
    return Problem(422, detail=detail, code="contradicted", errors=errors, members={"contradicted_fields": count})


def _cut(value: Any) -> Any:
    """Return a value as it is, or the beginning of its JSON where that is long."""
    text = json.dumps(value, default=str)
    return value if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]} ... ({len(text)} characters)"
