"""The columns of a list of runs, and their orders, each in two parts: runs without a value come last both ways."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from django.db.models import Q, QuerySet

from analysis.models import Run
from analysis.models.keyset import ListPart, reversed_key

RUN = "run"
"""The first column, always shown: it names the run and links to it."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `order` is its natural order with tie-breaks, empty where it cannot be sorted.

    `absent` stands for a missing value: such runs come last both ways. Only finished measurements have figures.
    """

    key: str
    title: str
    order: tuple[str, ...] = ()
    absent: str | None = None
    can_be_absent: bool = False
    is_figure: bool = False
    falls_first: bool = False

    @property
    def first_sort(self) -> str:
        """The sort order of a first click on its title: the largest figure, the newest date, the first name."""
        return f"-{self.key}" if self.falls_first else self.key


def _text(key: str, title: str, path: str, absent: bool = False) -> Column:
    return Column(key, title, (path, "-created_at", "-id"), absent="", can_be_absent=absent)


def _figure(key: str, title: str, path: str) -> Column:
    return Column(key, title, (path, "id"), can_be_absent=True, is_figure=True, falls_first=True)


COLUMNS = {
    column.key: column
    for column in (
        Column(RUN, "Run", ("id",), falls_first=True),
        _text("state", "State", "state"),
        _text("kind", "Kind", "kind__published"),
        _text("model", "Model", "model"),
        _text("gpu", "Device", "device_name", absent=True),
        Column("place", "Host and device"),
        Column("origin", "Origin"),
        _text("precision", "Precision", "precision"),
        _text("optimizer", "Optimizer", "optimizer"),
        _figure("largest", "Largest", "largest_batch_size"),
        _figure("recommended", "Recommended", "recommended_batch_size"),
        _figure("speedup", "Speed-up", "claimed_speedup"),
        _figure("samples", "Samples/s", "recommended_samples_per_second"),
        _figure("memory", "Memory used", "recommended_memory_bytes"),
        Column("unused", "Unused today", is_figure=True),
        Column("curve", "Memory curve"),
        _figure("saving", "Saved a year", "claimed_saving_per_year_usd"),
        _figure("cost", "$ per million", "cost_per_million_samples_usd"),
        # by the person's number, which the run has: by name, a database would join and sort the whole history
        Column("user", "User", ("requested_by_id", "-created_at", "-id"), can_be_absent=True),
        _text("name", "Name", "name", absent=True),
        Column("tags", "Tags"),
        Column("note", "Note"),
        Column("created", "Created", ("created_at", "id"), falls_first=True),
        Column("ended", "Ended", ("finished_at", "id"), can_be_absent=True, falls_first=True),
    )
}
_OUTCOME = Column("outcome", "State")
"""What a run ended with, whether or not its size is certified."""
RECENT = (
    *(COLUMNS[key] for key in (RUN, "state", "gpu", "largest", "recommended", "speedup")),
    Column("used", "Memory used"),
    *(COLUMNS[key] for key in ("saving", "created")),
)
OF_SCRIPTS = (
    *(COLUMNS[RUN], _OUTCOME, COLUMNS["gpu"], Column("today", "Today", is_figure=True), Column("answer", "Answer")),
    *(COLUMNS["unused"], COLUMNS["created"]),
)
OF_VALIDATIONS = (COLUMNS[RUN], replace(_OUTCOME, title="Verdict"), COLUMNS["gpu"], COLUMNS["created"])
DEFAULT = (RUN, "state", "gpu", "largest", "recommended", "speedup", "curve", "memory", "saving", "created")
DEFAULT_SORT = "-created"


def columns_named(keys: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns in this order, the run first. ValueError names an unknown or repeated column."""
    wanted = list(keys)
    for place, key in enumerate(wanted):
        if key not in COLUMNS:
            raise ValueError(f"There is no column “{key}”. Known columns: {', '.join(COLUMNS)}.")
        if key in wanted[:place]:
            raise ValueError(f"The column “{key}” is named twice.")
    return tuple(COLUMNS[key] for key in (RUN, *(key for key in wanted if key != RUN)))


def moved(keys: tuple[str, ...], key: str, by: int) -> tuple[str, ...]:
    """Move a column by one place, but not before the run's column or past the ends."""
    others = [each for each in keys if each != key]
    place = min(max(keys.index(key) + by, 1), len(others))
    return (*others[:place], key, *others[place:])


@dataclass(frozen=True, slots=True)
class Sort:
    column: Column
    is_reversed: bool

    @property
    def keys(self) -> tuple[str, ...]:
        natural = self.column.order
        return tuple(map(reversed_key, natural)) if self.is_reversed else natural

    @property
    def path(self) -> str:
        return self.column.order[0]

    def parts(self, runs: QuerySet[Run]) -> list[ListPart[Run]]:
        """Order the runs with a value, then those without one, newest first."""
        if not self.column.can_be_absent:
            return [ListPart(runs, self.keys)]
        # the text of the partial indexes, which are used for no other ones
        has, has_not = Q(**{f"{self.path}__isnull": False}), Q(**{f"{self.path}__isnull": True})
        if self.column.absent is not None:
            has, has_not = Q(**{f"{self.path}__gt": ""}), Q(**{self.path: ""})
        return [
            ListPart(runs.filter(has), self.keys, self.path, has_figure=True),
            ListPart(runs.filter(has_not), ("-created_at", "-id"), self.path, has_figure=False),
        ]


def sort_named(text: str) -> Sort:
    """Read "-largest" as the largest first. ValueError says what there is instead."""
    key = text.removeprefix("-")
    if key not in COLUMNS or not COLUMNS[key].order:
        sortable = ", ".join(column.key for column in COLUMNS.values() if column.order)
        raise ValueError(f"Runs are not sorted by “{key}”. They are by: {sortable}; with - before it, in reverse.")
    return Sort(COLUMNS[key], text.startswith("-"))
