"""PURE: a comparison as lines, as a Markdown table, and as JUnit XML. `doubts` are warnings about untrusted origins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..text.printable import printable
from .changes import Difference
from .compare import Row, Verdict

_MARKS = {Verdict.PASSED: "PASS", Verdict.REGRESSED: "FAIL", Verdict.UNKNOWN: "OPEN"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = re.compile(r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)")
_LINE_MOST = 2_000
_SUSPECTED = "Suspected, because it is not as it was in the baseline:"
_UNCHANGED = "No recorded version or setting is other than in the baseline."


def is_regression(rows: Sequence[Row]) -> bool:
    return any(row.verdict is Verdict.REGRESSED for row in rows)


def lines(rows: Sequence[Row], suspects: Sequence[Difference] | None, doubts: Sequence[str] = ()) -> list[str]:
    texts = [f"{r.name}: {r.now}; baseline or demand: {r.baseline} ({r.reason})" for r in rows]
    found = [f"[WARN] {printable(doubt, _LINE_MOST)}" for doubt in doubts]
    found += [f"[{_MARKS[r.verdict]}] {printable(text, _LINE_MOST)}" for r, text in zip(rows, texts, strict=True)]
    if suspects is not None:
        named = [f"  {printable(each.text, _LINE_MOST)}" for each in suspects]
        found += [_SUSPECTED, *named] if suspects else [_UNCHANGED]
    return found


def markdown(title: str, rows: Sequence[Row], suspects: Sequence[Difference] | None, doubts: Sequence[str] = ()) -> str:
    head = ["| Figure | Now | Baseline or demand | Verdict | Why |", "| --- | --- | --- | --- | --- |"]
    warnings = [line for doubt in doubts for line in (f"> **Warning:** {_cell(doubt)}", "")]
    parts = [f"### {_cell(title)}", "", *warnings, *head]
    for row in rows:
        verdict = f"**{row.verdict}**" if row.verdict is Verdict.REGRESSED else str(row.verdict)
        cells = (_cell(row.name), _cell(row.now), _cell(row.baseline), verdict, _cell(row.reason))
        parts.append(f"| {' | '.join(cells)} |")
    parts.append("")
    if suspects is not None:
        parts += [_SUSPECTED, "", *(f"- {_cell(each.text)}" for each in suspects)] if suspects else [_UNCHANGED]
        parts.append("")
    return "\n".join(parts)


def _cell(text: str) -> str:
    """Escape what would end a cell, or be markup, HTML or a link: the texts come from untrusted documents."""
    line = printable(" ".join(text.split()), _LINE_MOST).replace("&", "&amp;")
    shown = _MARKUP.sub(lambda found: f"\\{found[0]}", line)
    return shown.replace("<", "&lt;").replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def junit(title: str, rows: Sequence[Row], suspects: Sequence[Difference] | None, doubts: Sequence[str] = ()) -> bytes:
    counts = {verdict: str(sum(r.verdict is verdict for r in rows)) for verdict in Verdict}
    suite = Element("testsuite", name=_xml(title), tests=str(len(rows) + len(doubts)), errors="0")
    suite.set("failures", counts[Verdict.REGRESSED])
    suite.set("skipped", str(int(counts[Verdict.UNKNOWN]) + len(doubts)))
    for doubt in doubts:
        case = SubElement(suite, "testcase", classname="memorymark.check", name="origin")
        SubElement(case, "skipped", message=_xml(f"Warning: {doubt}"))
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
    return _NO_XML.sub("", text)
