"""PURE: a comparison as lines, as a Markdown table, and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from .changes import Change
from .compare import Row, Verdict

_MARKS = {Verdict.PASSED: "PASS", Verdict.REGRESSED: "FAIL", Verdict.UNKNOWN: "OPEN"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SUSPECTED = "Suspected, because it is not as it was in the baseline:"
_UNCHANGED = "No recorded version or setting is other than in the baseline."


def is_regression(rows: Sequence[Row]) -> bool:
    """Whether one figure is worse than allowed."""
    return any(row.verdict is Verdict.REGRESSED for row in rows)


def lines(rows: Sequence[Row], suspects: Sequence[Change] | None) -> list[str]:
    """Return the report for a terminal. `suspects` is None where there is no baseline, or no regression."""
    found = [f"[{_MARKS[r.verdict]}] {r.name}: {r.now}; baseline or demand: {r.baseline} ({r.reason})" for r in rows]
    if suspects is not None:
        found += [_SUSPECTED, *(f"  {each.text}" for each in suspects)] if suspects else [_UNCHANGED]
    return found


def markdown(title: str, rows: Sequence[Row], suspects: Sequence[Change] | None) -> str:
    """Return a heading, a table and the suspects, for the summary of a job."""
    cells = [(r.name, r.now, r.baseline, f"**{r.verdict}**" if _is_bad(r) else str(r.verdict), r.reason) for r in rows]
    table = [("Figure", "Now", "Baseline or demand", "Verdict", "Why"), ("---",) * 5, *cells]
    parts = [f"### {_cell(title)}", "", *("| " + " | ".join(map(_cell, row)) + " |" for row in table), ""]
    if suspects is not None:
        parts += [_SUSPECTED, "", *(f"- {_cell(each.text)}" for each in suspects)] if suspects else [_UNCHANGED]
        parts.append("")
    return "\n".join(parts)


def _is_bad(row: Row) -> bool:
    return row.verdict is Verdict.REGRESSED


def _cell(text: str) -> str:
    """Escape what ends a cell or begins HTML: the texts come out of documents."""
    return " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")


def junit(title: str, rows: Sequence[Row], suspects: Sequence[Change] | None) -> bytes:
    """Return the rows as test cases: a regression is a failure, what is not known is skipped."""
    counts = {verdict: str(sum(r.verdict is verdict for r in rows)) for verdict in Verdict}
    suite = Element("testsuite", name=_xml(title), tests=str(len(rows)), errors="0")
    suite.set("failures", counts[Verdict.REGRESSED])
    suite.set("skipped", counts[Verdict.UNKNOWN])
    for row in rows:
        case = SubElement(suite, "testcase", classname="memorymark.check", name=_xml(row.name))
        text = _xml(f"{row.now}; baseline or demand: {row.baseline} ({row.reason})")
        if row.verdict is Verdict.REGRESSED:
            failure = SubElement(case, "failure", message=text)
            failure.text = _xml("\n".join(each.text for each in suspects or ()))
        elif row.verdict is Verdict.UNKNOWN:
            SubElement(case, "skipped", message=text)
    indent(suite)
    body: str = tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'.encode()


def _xml(text: str) -> str:
    """Leave out the characters that XML cannot hold."""
    return _NO_XML.sub("", text)
