"""The glossary as rows, out of docs/glossary.md: the words of the product have one source."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from analysis.pages.help.documents import documents

_ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \|$")
_CODE, _EMPHASIS = re.compile(r"`([^`]+)`"), re.compile(r"\*([^*]+)\*")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the glossary: its heading, and (term, meaning as HTML)."""

    title: str
    terms: tuple[tuple[str, SafeString], ...]


def glossary() -> list[Section]:
    """Return the words of the product, by the sections of docs/glossary.md."""
    found = documents().get("glossary")
    return [] if found is None else sections(found.text)


def sections(markdown: str) -> list[Section]:
    """Read `## Title` and the table under it, where its columns are a term and its meaning."""
    found = []
    for part in markdown.split("\n## ")[1:]:
        title, *lines = part.splitlines()
        if "| term | meaning |" not in lines:
            continue
        rows = [row for line in lines if (row := _ROW.match(line)) and row["term"] != "term"]
        found.append(Section(title, tuple((row["term"], _inline(row["meaning"])) for row in rows)))
    return found


def _inline(text: str) -> SafeString:
    """Turn `code` and *emphasis* into HTML; everything else is escaped."""
    html = _EMPHASIS.sub(r"<em>\1</em>", _CODE.sub(r"<code>\1</code>", escape(text)))
    return mark_safe(html)  # noqa: S308  # escaped above, and the file is part of the installation
