"""What the address of a comparison asks for. What is not understood is refused, by its parameter's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from analysis.http.query_string import BadQuery, Query, is_row_id, one_of, refuse_unknown

CHARTED_MAX = 8
"""As many runs as there are colours; more are compared as a table."""
COMPARED_MAX = 50
SCALES = ("log", "linear")


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """`?ids=3,8,9&baseline=3&x=log&y=linear`. Without a baseline it is the first run that has a result."""

    ids: tuple[int, ...]
    baseline: int | None = None
    x: str = "log"
    y: str = "linear"

    @classmethod
    def of(cls, query: Query) -> CompareQuery:
        refuse_unknown(query, ("ids", "baseline", "x", "y"))
        ids = _ids(",".join(query.getlist("ids")))
        return cls(ids, _baseline(query.get("baseline"), ids), _scale(query, "x", "log"), _scale(query, "y", "linear"))

    def address(self, **changed: Any) -> str:
        """Write the same view with these parts changed, as the query of an address."""
        parts = {"ids": self.ids, "baseline": self.baseline, "x": self.x, "y": self.y} | changed
        parts["ids"] = ",".join(map(str, parts["ids"]))
        return "?" + urlencode({name: value for name, value in parts.items() if value is not None}, safe=",")


def _ids(text: str) -> tuple[int, ...]:
    parts = [word.strip() for word in text.split(",") if word.strip()]
    wrong = next((word for word in parts if not is_row_id(word)), None)
    if wrong is not None:
        raise BadQuery("ids", f"{wrong[:40]!r} is not the number of a run")
    ids = tuple(dict.fromkeys(map(int, parts)))
    if len(ids) < 2:
        raise BadQuery("ids", "name at least two different runs, such as ids=3,8")
    if len(ids) > COMPARED_MAX:
        raise BadQuery("ids", f"names {len(ids)} runs; at most {COMPARED_MAX} are compared at once")
    return ids


def _baseline(word: str | None, ids: tuple[int, ...]) -> int | None:
    if not word:
        return None
    if not is_row_id(word) or int(word) not in ids:
        raise BadQuery("baseline", f"{word[:40]!r} is not one of the runs compared ({', '.join(map(str, ids[:10]))})")
    return int(word)


def _scale(query: Query, name: str, default: str) -> str:
    return one_of(query, name, SCALES, default)
