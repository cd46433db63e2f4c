"""The Markdown files of docs/, sorted by what a reader wants from them, and the glossary as rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from analysis.pages.help.markdown import Rendered, rendered


@dataclass(frozen=True, slots=True)
class DocumentGroup:
    title: str
    purpose: str
    names: tuple[str, ...]


GROUPS = (
    DocumentGroup("Tutorial", "Learn by doing it once.", ("slurm_in_five_minutes",)),
    DocumentGroup(
        "How-to",
        "Get one thing done.",
        (
            *("tune", "it_died", "not_measurable", "advice", "clusters", "reporting", "ci"),
            *("notifications", "operations", "add_a_model"),
        ),
    ),
    DocumentGroup("Reference", "Look up a fact.", ("glossary", "api", "configuration", "figures")),
    DocumentGroup(
        "Explanation",
        "Understand how it works, and how far to trust it.",
        ("measuring", "estimates", "security", "architecture", "scaling"),
    ),
)
NAMES = tuple(name for group in GROUPS for name in group.names)
"""The documents that the help page offers, in its order."""
_FOLDER = Path(settings.BASE_DIR) / "docs"


@dataclass(frozen=True, slots=True)
class HelpDocument:
    name: str
    text: str
    page: Rendered

    @property
    def title(self) -> str:
        return self.page.title


@cache
def documents() -> dict[str, HelpDocument]:
    """Read and render the documents that this installation has, once in each process."""
    return {name: _read(name) for name in NAMES if (_FOLDER / f"{name}.md").is_file()}


def documents_by_group() -> list[tuple[DocumentGroup, list[HelpDocument]]]:
    found = documents()
    return [(group, [found[name] for name in group.names if name in found]) for group in GROUPS]


def _read(name: str) -> HelpDocument:
    text = (_FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return HelpDocument(name, text, rendered(text, NAMES))


_ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \|$")
_CODE, _EMPHASIS = re.compile(r"`([^`]+)`"), re.compile(r"\*([^*]+)\*")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the glossary: its heading, and (term, meaning as HTML)."""

    title: str
    terms: tuple[tuple[str, SafeString], ...]


def glossary() -> list[Section]:
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
    html = _EMPHASIS.sub(r"<em>\1</em>", _CODE.sub(r"<code>\1</code>", escape(text)))
    return mark_safe(html)  # noqa: S308  # escaped above, and the file is part of the installation
