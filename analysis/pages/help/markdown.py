"""Markdown as HTML for a page with a strict content policy: anchors, a table of contents, and links between documents.

markdown-it-py parses; its tokens are changed here, because only they know a heading from a line that looks like one.
nh3 cleans what comes out, so that a file with `<script>` in it cannot run anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import nh3
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table")
_COPIED = frozenset({"sh", "bash", "python", "toml", "yaml"})
"""Languages that people paste. A `console` or `text` block shows answers too."""
_TAGS = frozenset(
    {
        *("h1", "h2", "h3", "h4", "p", "ul", "ol", "li", "a", "code", "pre", "em", "strong", "blockquote", "hr", "br"),
        *("div", "table", "thead", "tbody", "tr", "th", "td"),
    }
)
_ATTRIBUTES: dict[str, set[str]] = {
    "a": {"href"},
    "div": {"class", "tabindex", "role", "aria-label"},
    "pre": {"data-copy", "tabindex"},
    **{tag: {"id"} for tag in ("h1", "h2", "h3", "h4")},
    "td": {"class"},
    "th": {"class"},
}


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class TextSection:
    """The plain text below one heading, for the search; the title's own section has an empty anchor."""

    title: str
    anchor: str
    text: str
    prose: str = ""
    """The text without blocks of code: what an excerpt shows."""


@dataclass(frozen=True, slots=True)
class Rendered:
    title: str
    html: SafeString
    headings: tuple[Heading, ...]
    sections: tuple[TextSection, ...]


def rendered(markdown: str, names: Collection[str]) -> Rendered:
    """Render one document; `names` are the documents that links may lead to."""
    tokens = _PARSER.parse(markdown)
    headings = tuple(_with_anchors(tokens))
    title, body = _without_title(tokens)
    sections = tuple(_sections(title, body, headings))
    for token in body:
        token.children = list(_resolved(token.children, names)) if token.children else token.children
        _align_by_class(token)
    html = _PARSER.renderer.render(list(_for_the_page(body)), _PARSER.options, {})
    return Rendered(title, mark_safe(_cleaned(html)), headings[1:] if title else headings, sections)  # noqa: S308  # nh3 has cleaned it


def anchor_of(heading: str) -> str:
    """Return GitHub's anchor of a heading, so that a link works in both places.

    >>> anchor_of("What a share link shows: `--whole-run`")
    'what-a-share-link-shows---whole-run'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _cleaned(html: str) -> str:
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
    )


def _with_anchors(tokens: Sequence[Token]) -> Iterator[Heading]:
    """Give each heading its anchor; the second of the same text gets `-1`, as on GitHub."""
    seen: dict[str, int] = {}
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _plain(tokens[place + 1])
            anchor = anchor_of(text)
            seen[anchor] = seen.get(anchor, -1) + 1
            anchor += f"-{seen[anchor]}" if seen[anchor] else ""
            token.attrSet("id", anchor)
            yield Heading(int(token.tag[1]), text, anchor)


def _without_title(tokens: list[Token]) -> tuple[str, list[Token]]:
    if tokens and tokens[0].type == "heading_open":
        return _plain(tokens[1]), tokens[3:]
    return "", tokens


def _plain(inline: Token) -> str:
    parts = (" " if child.type in {"softbreak", "hardbreak"} else child.content for child in inline.children or ())
    return "".join(parts)


def _sections(title: str, body: Sequence[Token], headings: Sequence[Heading]) -> Iterator[TextSection]:
    by_anchor = {heading.anchor: heading for heading in headings}
    name, anchor, texts, prose, in_heading = title, "", list[str](), list[str](), False
    for token in body:
        if token.type == "heading_open":
            yield TextSection(name, anchor, " ".join(texts), " ".join(prose))
            anchor = str(token.attrGet("id"))
            name, texts, prose, in_heading = by_anchor[anchor].text, [], [], True
        elif token.type == "heading_close":
            in_heading = False
        elif token.type == "inline" and not in_heading:
            texts.append(_plain(token))
            prose.append(texts[-1])
        elif token.type == "fence":
            texts.append(token.content.strip())
    yield TextSection(name, anchor, " ".join(texts), " ".join(prose))


def _resolved(tokens: Sequence[Token], names: Collection[str]) -> Iterator[Token]:
    """Lead links between documents to their pages; a file that has no page is named after the link's text."""
    unlinked = ""
    for token in tokens:
        if token.type == "link_open":
            address = str(token.attrGet("href"))
            page = _page_of(address, names)
            if page is None:
                unlinked = address
                continue
            token.attrSet("href", page)
        elif token.type == "link_close" and unlinked:
            yield Token("text", "", 0, content=" (")
            yield Token("code_inline", "code", 0, content=unlinked.removeprefix("../"))
            yield Token("text", "", 0, content=")")
            unlinked = ""
            continue
        yield token


def _page_of(address: str, names: Collection[str]) -> str | None:
    """Return the portal's address for a link of a document; None for a file without a page."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or not parts.path:
        return address
    name = parts.path.removesuffix(".md")
    if name not in names or name == parts.path:
        return None
    page = reverse("analysis:document", args=[name])
    return f"{page}#{parts.fragment}" if parts.fragment else page


def _align_by_class(token: Token) -> None:
    """Say "right" by a class: the content policy allows no inline style."""
    style = str(token.attrs.pop("style", "")) if token.type in {"th_open", "td_open"} else ""
    if "right" in style:
        token.attrSet("class", "number")


def _for_the_page(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        if token.type == "table_open":
            attributes = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": "Table"}
            yield Token("div_open", "div", 1, attrs=dict(attributes), block=True)
            yield token
        elif token.type == "table_close":
            yield token
            yield Token("div_close", "div", -1, block=True)
        elif token.type in {"fence", "code_block"}:
            yield _code(token)
        else:
            yield token


def _code(token: Token) -> Token:
    language = token.info.split(maxsplit=1)[0] if token.info else ""
    name = token.info.removeprefix(language).strip() or "these lines"
    copied = f' data-copy="{escape(name)}"' if language in _COPIED else ""
    html = f'<pre tabindex="0"{copied}>{escape(token.content.rstrip())}</pre>\n'
    return Token("html_block", "", 0, content=html, block=True)
