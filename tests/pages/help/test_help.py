"""Help without internet: the glossary, the documents as pages of Markdown, and the search over them."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client

from analysis.pages.help.documents import NAMES, documents, glossary, sections
from analysis.pages.help.markdown import anchor_of, rendered
from analysis.pages.help.search import MAX_CHARACTERS, MAX_RESULTS, MAX_WORDS, search
from tests.factories.pages import words

DOCS = Path(settings.BASE_DIR) / "docs"


def test_every_document_of_the_repository_is_offered_once() -> None:
    assert sorted(NAMES) == sorted(path.stem for path in DOCS.glob("*.md"))


def test_all_documents_together_have_at_most_twenty_thousand_words() -> None:
    files = [*DOCS.glob("*.md"), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md"]
    assert sum(len(path.read_text().split()) for path in files) <= 20_000


def test_the_words_are_those_of_the_glossary() -> None:
    found = {term: meaning for section in glossary() for term, meaning in section.terms}
    text = (DOCS / "glossary.md").read_text().split("\n## One word for one thing")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    heads = sum(row == "| term | meaning |" for row in rows)
    assert len(found) == len(rows) - heads
    assert found["boundary"] == "The largest batch size that fits."


def test_code_and_emphasis_are_marked_and_nothing_else_becomes_html() -> None:
    (section,) = sections("# Glossary\n\n## Part\n\n| term | meaning |\n|---|---|\n| x | A `b` of *c* & <d>. |\n")
    assert section.title == "Part"
    assert section.terms == (("x", "A <code>b</code> of <em>c</em> &amp; &lt;d&gt;."),)


@pytest.mark.django_db
def test_the_help_page_explains_words_and_lists_documents_by_purpose(alice_client: Client) -> None:
    text = alice_client.get("/help/").content.decode()
    assert [f"/help/{name}/" for name in NAMES if f'"/help/{name}/"' not in text] == []
    assert "How to read a result" in words(text)
    assert [kind for kind in ("Tutorial", "How-to", "Reference", "Explanation") if kind not in words(text)] == []


@pytest.mark.django_db
def test_where_to_find_what_names_every_page(alice_client: Client) -> None:
    text = alice_client.get("/help/").content.decode()
    part = text[text.index('id="pages-title"') : text.index('id="reading-title"')]
    pages = (
        *("/", "/commands/", "/runs/", "/compare/", "/estimates/", "/what-to-change/", "/matrix/", "/trend/"),
        *("/fleet/", "/validations/", "/account/notifications/", "/account/", "/api/docs/"),
    )
    assert [page for page in pages if f'href="{page}"' not in part] == []
    assert [page for page in pages if page != "/api/docs/" and alice_client.get(page).status_code != 200] == []


@pytest.mark.django_db
def test_a_document_is_a_page_with_headings_tables_and_a_way_back(alice_client: Client) -> None:
    text = alice_client.get("/help/measuring/").content.decode()
    assert "<h1>How MemoryMark measures</h1>" in text
    assert '<h2 id="a-probe">A probe</h2>' in text
    assert '<a href="#a-probe">A probe</a>' in text
    assert "<table>" in text
    assert "|---|" not in text
    assert alice_client.get("/help/secret_key/", headers={"accept": "text/html"}).status_code == 404


def test_no_document_keeps_a_trace_of_markdown_or_an_inline_style() -> None:
    for document in documents().values():
        html = re.sub(r"<(pre|code).*?</\1>", "", document.page.html, flags=re.DOTALL)
        assert "style=" not in html, document.name
        assert not re.search(r"\|---|\]\(|^#+ |\*\*|<!--", html, re.MULTILINE), document.name
        assert document.title, document.name


@pytest.mark.django_db
def test_the_search_leads_to_the_section_that_holds_the_words(alice_client: Client) -> None:
    text = alice_client.get("/help/", {"q": "BATCH_SIZE_IGNORED"}).content.decode()
    assert "<mark>batch_size_ignored</mark>" in text
    assert 'href="/help/tune/#' in text
    nothing = alice_client.get("/help/", {"q": "xylophone"}).content.decode()
    assert "Nothing was found for “xylophone”" in words(nothing)


@pytest.mark.django_db
def test_managers_find_the_page_of_the_admin_panel_and_others_do_not(alice_client: Client, root_client: Client) -> None:
    for question, name in (("limit a user", "Quotas"), ("cost", "GPU prices"), ("add user", "Users")):
        shown = root_client.get("/help/", {"q": question}).content.decode()
        assert "In the admin panel: <a href=" in shown
        assert f">{name}</a>" in shown
    assert "In the admin panel" not in alice_client.get("/help/", {"q": "cost"}).content.decode()


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("multi gpu", "several-gpus"),
        ("multi-GPU training", "several-gpus"),
        ("sso", "operations#single-sign-on"),
        ("forgot password", "operations#people"),
        ("back up", "operations#backup-and-restore"),
        ("backup", "operations#backup-and-restore"),
        ("upgrade", "operations#upgrade"),
        ("emulated", "tune#ranks-that-are-not-there---emulate-ranks"),
        ("how do I back up the database", "operations#backup-and-restore"),
        ("certificate xylophone", "certificate"),
    ],
)
def test_people_find_a_section_by_words_of_their_own(question: str, place: str) -> None:
    first = search(question).results[0]
    assert place in f"{first.document.name}#{first.section.anchor}"


def test_a_section_with_the_word_in_its_heading_comes_first() -> None:
    first = search("certificate").results[0]
    assert "certificate" in first.section.title.casefold()


def test_a_phrase_counts_more_than_its_words_and_a_word_is_found_by_its_beginning() -> None:
    first = search("out of memory").results[0]
    assert first.match.casefold() == "out of memory" or "out of memory" in first.section.title.casefold()
    assert all(hit.match.casefold().startswith("fit") for hit in search("fit").results if hit.match)
    assert search("ignored").count > 0


def test_a_search_is_bounded_and_a_question_is_never_html() -> None:
    assert search("a " * (MAX_WORDS + 1)).problem
    assert search("a" * (MAX_CHARACTERS + 1)).problem
    everything = search("a")
    assert len(everything.results) == MAX_RESULTS < everything.count
    assert search("").results == ()


@pytest.mark.django_db
def test_what_was_searched_for_is_escaped(alice_client: Client) -> None:
    text = alice_client.get("/help/", {"q": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert" not in text


@pytest.mark.django_db
def test_while_searching_the_rest_of_the_help_is_folded_and_can_be_reached(alice_client: Client) -> None:
    text = alice_client.get("/help/?q=reserve").content.decode()
    rest = text[text.index('<details class="subcard help-rest">') :]
    assert 'id="found"' not in rest
    assert [part for part in ("pages-title", "documents-title", "words-title") if f'id="{part}"' not in rest] == []
    assert "help-rest" not in alice_client.get("/help/").content.decode()


def test_an_excerpt_has_no_half_of_a_word() -> None:
    for hit in search("reserve").results:
        section = " ".join((hit.section.prose, hit.section.text))
        first = hit.before.removeprefix("… ").split(" ")[0]
        assert not first or re.search(rf"(?:^|\s){re.escape(first)}", section), hit.before


ROOT = Path(settings.BASE_DIR)
WRITTEN = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
LINKED_NAMES = ("tune", "api")


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
    elements.feed(rendered(f"# Title\n\n{hostile}\n", LINKED_NAMES).html)
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
    html = rendered("# T\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n", LINKED_NAMES).html
    assert '<div class="scroll" tabindex="0" role="region"' in html
    assert '<td class="number">2</td>' in html
    assert "style" not in html


def test_code_to_paste_has_a_copy_button_and_an_answer_has_none() -> None:
    html = rendered('# T\n\n```sh\necho "a" <b>\n```\n\n```console\n$ true\n```\n', LINKED_NAMES).html
    assert '<pre tabindex="0" data-copy="these lines">echo "a" &lt;b&gt;</pre>' in html.replace("&quot;", '"')
    assert html.count("data-copy") == 1


def test_links_lead_to_pages_anchors_or_name_the_file() -> None:
    text = (
        "# T\n\n[a](tune.md#b), [c](#d), [e](https://example.org/x.md), [f](../benchmarks/g.json), [h](../README.md)\n"
    )
    html = rendered(text, LINKED_NAMES).html
    assert re.findall(r'href="([^"]*)"', html) == ["/help/tune/#b", "#d", "https://example.org/x.md"]
    assert "f (<code>benchmarks/g.json</code>)" in html


def test_headings_of_the_same_text_have_anchors_of_their_own() -> None:
    page = rendered("# T\n\n## Limits\n\n## Limits\n\n### More `code`, here\n", LINKED_NAMES)
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
