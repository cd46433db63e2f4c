"""The Markdown files of docs/, sorted by what a reader wants from them. They are the only source of the help pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings

from analysis.pages.help.markdown import Rendered, rendered


@dataclass(frozen=True, slots=True)
class DocumentGroup:
    """One of the four groups of documents: what a reader wants, and the files that serve it."""

    title: str
    purpose: str
    names: tuple[str, ...]


GROUPS = (
    DocumentGroup("Tutorial", "Learn by doing it once.", ("slurm_in_five_minutes",)),
    DocumentGroup(
        "How-to",
        "Get one thing done.",
        (
            *("tune", "not_measurable", "advice", "clusters", "reporting", "ci"),
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
    """One file of docs/, and its page."""

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
