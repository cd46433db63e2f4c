"""The Markdown files of docs/: their titles, their text, and the glossary as rows. They are the only source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

NAMES = (
    *("measuring", "advice", "tune", "reporting", "clusters", "ci", "estimates", "api", "notifications", "glossary"),
    *("operations", "configuration", "security", "architecture", "add_a_model", "scaling", "figures"),
)
"""The documents that the help page offers, in its order."""
_GLOSSARY = "glossary"
_ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \|$")
_CODE, _EMPHASIS = re.compile(r"`([^`]+)`"), re.compile(r"\*([^*]+)\*")


@dataclass(frozen=True, slots=True)
class Document:
    """One file of docs/."""

    name: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the glossary: its heading, and (term, meaning as HTML)."""

    title: str
    terms: tuple[tuple[str, SafeString], ...]


@cache
def documents() -> dict[str, Document]:
    """Read the documents that this installation has."""
    folder = Path(settings.BASE_DIR) / "docs"
    paths = {name: folder / f"{name}.md" for name in NAMES}
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.is_file()}
    return {name: Document(name, _title(text), text) for name, text in texts.items()}


def glossary() -> list[Section]:
    """Return the words of the product, by the sections of docs/glossary.md."""
    found = documents().get(_GLOSSARY)
    return [] if found is None else sections(found.text)


def sections(markdown: str) -> list[Section]:
    """Read `## Title` and the table under it; the head of a table is no term."""
    parts = markdown.split("\n## ")[1:]
    return [Section(part.splitlines()[0], tuple(_terms(part))) for part in parts]


def _terms(part: str) -> list[tuple[str, SafeString]]:
    rows = [row for line in part.splitlines() if (row := _ROW.match(line)) and row["term"] != "term"]
    return [(row["term"], _inline(row["meaning"])) for row in rows]


def _inline(text: str) -> SafeString:
    """Turn `code` and *emphasis* into HTML; everything else is escaped."""
    html = _EMPHASIS.sub(r"<em>\1</em>", _CODE.sub(r"<code>\1</code>", escape(text)))
    return mark_safe(html)  # noqa: S308  # escaped above, and the file is part of the installation


def _title(markdown: str) -> str:
    return markdown.partition("\n")[0].removeprefix("# ")
