"""Runs of a list in groups, each with its number of runs, its largest recommended size and its largest waste.

Only the first runs of the list are grouped: to group a million of them would take seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds import BY_KIND
from analysis.presentation.labels import model_name, short_device_name

GROUPED_MAX = 500
"""The runs that are read for the groups, in the order of the list."""
GROUPS_MAX = 50
SHOWN_OF_EACH, SHOWN_MAX = 5, 50
"""The runs that a group shows, and all groups together; the other groups show their heading alone."""

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to group: the columns it reads, what a group is called, and the filter that finds its runs."""

    title: str
    columns: tuple[str, ...]
    label: Callable[[Values], str]
    filters: Callable[[Values], dict[str, Any]]
    absent: str
    """The name of the group of runs that have no value."""


_TAG = "tag"
GROUPINGS = {
    "model": Grouping(
        "model", (), lambda run: model_name(run["model"]), lambda run: {"model": run["model"]}, "No model"
    ),
    "gpu": Grouping(
        "GPU",
        ("device_name",),
        lambda run: short_device_name(run["device_name"]),
        lambda run: {"gpu": run["device_name"]},
        "No GPU",
    ),
    "device": Grouping(
        "device",
        ("device", "device__host__name", "device__device"),
        lambda run: f"{run['device__host__name']} {run['device__device']}" if run["device"] else "",
        lambda run: {"device": run["device"]},
        "On no device",
    ),
    "person": Grouping(
        "person",
        ("requested_by__username",),
        lambda run: run["requested_by__username"] or "",
        lambda run: {"user": run["requested_by__username"]},
        "No person",
    ),
    "script": Grouping(
        "script",
        ("kind", "precision"),  # of ranks of a model that is known
        lambda run: model_name(run["model"]) if BY_KIND[run["kind"]].runs_own_code and not run["precision"] else "",
        lambda run: {"model": run["model"]},
        "Models of the catalogue",
    ),
    _TAG: Grouping("tag", (), lambda run: run[_TAG], lambda run: {"tag": run[_TAG]}, "Without a tag"),
}
"""What `group_by` takes."""

_FIGURES = ("pk", "model", "recommended_batch_size", "current_waste_bytes")


@dataclass(slots=True)
class Group:
    """The runs of one value. `filters` finds them all in the list; empty where no filter does."""

    label: str
    filters: dict[str, Any]
    numbers: list[int] = field(default_factory=list)
    recommended_batch_size: int | None = None
    waste_bytes: int | None = None
    shown: list[int] = field(default_factory=list)
    """The runs under its heading, as far as there is room."""

    def add(self, run: Values) -> None:
        self.numbers.append(run["pk"])
        self.recommended_batch_size = _larger(self.recommended_batch_size, run["recommended_batch_size"])
        self.waste_bytes = _larger(self.waste_bytes, run["current_waste_bytes"])


def grouped(numbers: Sequence[int], by: str) -> list[Group]:
    grouping, found = GROUPINGS[by], _values(numbers, by)
    groups: dict[str, Group] = {}
    for number in numbers:
        for run in found.get(number, ()):
            label = grouping.label(run)
            if label not in groups:
                groups[label] = Group(label or grouping.absent, grouping.filters(run) if label else {})
            groups[label].add(run)
    listed = list(groups.values())[:GROUPS_MAX]
    room = SHOWN_MAX
    for group in listed:
        group.shown = group.numbers[: min(SHOWN_OF_EACH, room)]
        room -= len(group.shown)
    return listed


def _values(numbers: Sequence[int], by: str) -> dict[int, list[Values]]:
    columns = (*_FIGURES, *GROUPINGS[by].columns)
    runs = Run.all_runs.filter(pk__in=numbers).order_by().values(*columns)
    if by != _TAG:
        return {run["pk"]: [run] for run in runs}
    tags: dict[int, list[str]] = defaultdict(list)
    through = Run.tags.through.objects.filter(run__in=numbers).order_by("tag__name")
    for number, name in through.values_list("run_id", "tag__name"):
        tags[number].append(name)
    return {run["pk"]: [{**run, _TAG: name} for name in tags.get(run["pk"], [""])] for run in runs}


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
