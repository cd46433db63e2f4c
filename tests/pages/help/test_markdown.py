"""Markdown as a page: what may stand in it, where its links lead, and how its headings are called."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from analysis.pages.help.documents import documents
from analysis.pages.help.markdown import anchor_of, rendered

ROOT = Path(settings.BASE_DIR)
WRITTEN = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
NAMES = ("tune", "api")


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<a href='javascript:alert(1)' onclick='alert(1)'>x</a>",
        "[x](javascript:alert(1))",
        "<iframe src='https://example.org'></iframe>",
        "<p style='color: red'>x</p><style>p {}</style>",
        "```sh <script>alert(1)</script>\n<script>alert(1)</script>\n```",
        "# <script>alert(1)</script>\n\n## <b onmouseover=alert(1)>x</b>",
    ],
)
def test_nothing_in_a_document_can_run_or_style(hostile: str) -> None:
    elements = Elements()
    elements.feed(rendered(f"# Title\n\n{hostile}\n", NAMES).html)
    assert elements.tags <= {"h1", "h2", "p", "a", "pre"}
    assert elements.attributes.keys() <= {"href", "rel", "id", "tabindex", "data-copy"}
    assert "javascript" not in elements.attributes.get("href", "")


class Elements(HTMLParser):
    """The tags and attributes of a page, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update({name: value or "" for name, value in attrs})


def test_a_table_scrolls_in_itself_and_aligns_by_a_class() -> None:
    html = rendered("# T\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n", NAMES).html
    assert '<div class="scroll" tabindex="0" role="region"' in html
    assert '<td class="number">2</td>' in html
    assert "style" not in html


def test_code_to_paste_has_a_copy_button_and_an_answer_has_none() -> None:
    html = rendered('# T\n\n```sh\necho "a" <b>\n```\n\n```console\n$ true\n```\n', NAMES).html
    assert '<pre tabindex="0" data-copy="these lines">echo "a" &lt;b&gt;</pre>' in html.replace("&quot;", '"')
    assert html.count("data-copy") == 1


def test_links_lead_to_pages_anchors_or_name_the_file() -> None:
    text = (
        "# T\n\n[a](tune.md#b), [c](#d), [e](https://example.org/x.md), [f](../benchmarks/g.json), [h](../README.md)\n"
    )
    html = rendered(text, NAMES).html
    assert re.findall(r'href="([^"]*)"', html) == ["/help/tune/#b", "#d", "https://example.org/x.md"]
    assert "f (<code>benchmarks/g.json</code>)" in html


def test_headings_of_the_same_text_have_anchors_of_their_own() -> None:
    page = rendered("# T\n\n## Limits\n\n## Limits\n\n### More `code`, here\n", NAMES)
    assert [heading.anchor for heading in page.headings] == ["limits", "limits-1", "more-code-here"]
    assert page.title == "T"


def anchors(path: Path) -> set[str]:
    if path.parent == ROOT / "docs":
        page = documents()[path.stem].page
        return {heading.anchor for heading in page.headings} | {anchor_of(page.title)}
    return {heading.anchor for heading in rendered(path.read_text(), ()).headings}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_every_link_between_documents_leads_to_a_file_and_a_heading(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    broken = []
    for address in re.findall(r"\]\(([^)\s]+)\)", text):
        parts = urlsplit(address)
        if parts.scheme:
            continue
        target = (path.parent / parts.path).resolve() if parts.path else path
        if not target.exists() or (parts.fragment and parts.fragment not in anchors(target)):
            broken.append(address)
    assert broken == []


@pytest.mark.parametrize("name", sorted(documents()))
def test_every_link_of_a_page_leads_to_a_heading_that_is_there(name: str) -> None:
    broken = []
    for address in re.findall(r'href="([^"]*)"', documents()[name].page.html):
        parts = urlsplit(address)
        if parts.scheme or not parts.fragment:
            continue
        target = parts.path.split("/")[2] if parts.path else name
        if parts.fragment not in {heading.anchor for heading in documents()[target].page.headings}:
            broken.append(address)
    assert broken == []
