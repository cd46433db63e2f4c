"""PURE: sentences that one place writes and another recognises, word for word.

A document from another machine may say why something is not known, and pages repeat it. So that nobody can have a page
say what they like, only sentences of the engine are accepted: each is written from its wording, and read back by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from string import Formatter

_KINDS = {
    "count": r"\d[\d,]{0,24}",
    "size": r"\d[\d,]{0,24}",
    "bytes": r"\d{1,7}(?:\.\d)? (?:[KMGT]i)?B",
    "sizes": r"\d{1,25}(?: and \d{1,25})*",
    "list": r"\d{1,12}(?:, \d{1,12}){0,98}",
    "error": r"[A-Za-z_]\w{0,39}",
    "errors": r"(?:an error|[A-Za-z_]\w{0,39})(?: and (?:an error|[A-Za-z_]\w{0,39}))*",
    "fraction": r"\d{1,2}\.\d%",
}
"""What the parts of a sentence look like, by the last word of their names. An error is the name of its class."""


@dataclass(frozen=True, eq=False)
class Wording:
    """A sentence of which only the named parts vary, as `{today_size}`.

    `parts` has the texts that a part may be, where it is none of the kinds: `{"when": ("", " in an earlier attempt")}`.

    >>> moved = Wording("{size} trained {count} steps{when}", {"when": ("", " before")})
    >>> moved.write(size=40, count=5, when="")
    '40 trained 5 steps'
    >>> moved.read("40 trained 5 steps before")
    {'size': '40', 'count': '5', 'when': ' before'}
    >>> moved.read("40 trained 5 steps, and is 50x as fast") is None
    True
    """

    template: str
    parts: Mapping[str, tuple[Text, ...]]

    def __init__(self, template: str, parts: Mapping[str, tuple[Text, ...]] | None = None) -> None:
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "parts", parts or {})

    def write(self, **parts: object) -> str:
        return self.template.format(**parts)

    def read(self, text: str) -> dict[str, str] | None:
        """Return the parts of a text; None where it is another sentence."""
        found = self._pattern.fullmatch(text)
        return None if found is None else found.groupdict()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("".join(self._patterns(is_named=True)), re.ASCII)

    def _patterns(self, *, is_named: bool) -> Iterator[str]:
        for words, name, _, _ in Formatter().parse(self.template):
            yield re.escape(words)
            if name is not None:
                allowed = self.parts.get(name)
                kind = _KINDS[name.rpartition("_")[2]] if allowed is None else "|".join(map(_pattern_of, allowed))
                yield f"(?P<{name}>{kind})" if is_named else f"(?:{kind})"


Text = str | Wording
"""A sentence: one that never varies, or a wording."""


def is_one_of(text: str, texts: Iterable[Text]) -> bool:
    return any(text == each if isinstance(each, str) else each.read(text) is not None for each in texts)


def error_name(name: str | None) -> str:
    """Return the name of an error's class, as a sentence may hold it; "an error" where it is none."""
    return name if name and re.fullmatch(_KINDS["error"], name, re.ASCII) else "an error"


def _pattern_of(text: Text) -> str:
    return re.escape(text) if isinstance(text, str) else "".join(text._patterns(is_named=False))
