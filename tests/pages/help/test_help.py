"""Help without internet: the glossary's words, and the documents of docs/ as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from analysis.pages.help.documents import NAMES, glossary, sections
from tests.factories.pages import words

DOCS = Path(settings.BASE_DIR) / "docs"


def test_every_document_of_the_repository_is_offered() -> None:
    assert set(NAMES) == {path.stem for path in DOCS.glob("*.md")}


def test_the_words_are_those_of_the_glossary() -> None:
    found = {term: meaning for section in glossary() for term, meaning in section.terms}
    rows = [line for line in (DOCS / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    heads = sum(row == "| term | meaning |" for row in rows)
    assert len(found) == len(rows) - heads
    assert found["boundary"] == "The largest batch size that fits."


def test_code_and_emphasis_are_marked_and_nothing_else_becomes_html() -> None:
    (section,) = sections("# Glossary\n\n## Part\n\n| term | meaning |\n|---|---|\n| x | A `b` of *c* & <d>. |\n")
    assert section.title == "Part"
    assert section.terms == (("x", "A <code>b</code> of <em>c</em> &amp; &lt;d&gt;."),)


@pytest.mark.django_db
def test_the_help_page_explains_words_and_lists_documents(alice_client: Client) -> None:
    text = alice_client.get("/help/").content.decode()
    assert [f"/help/{name}/" for name in NAMES if f'"/help/{name}/"' not in text] == []
    assert "How to read a result" in words(text)


@pytest.mark.django_db
def test_a_document_is_shown_as_it_is_written(alice_client: Client) -> None:
    text = alice_client.get("/help/measuring/").content.decode()
    assert "<h1>How MemoryMark measures</h1>" in text
    assert "## A probe" in text
    assert alice_client.get("/help/secret_key/", headers={"accept": "text/html"}).status_code == 404
