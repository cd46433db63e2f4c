"""The first runs of a list in groups, each with its count, its largest recommended size and its largest waste."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from analysis.models import Run
from analysis.presentation.kinds import presentation_of
from analysis.presentation.labels import model_name, short_device_name

GROUPED_MAX = 500
"""The runs that are read for the groups, in the order of the list."""
GROUPS_MAX = 50
SHOWN_OF_EACH, SHOWN_MAX = 5, 50
"""The runs that a group shows, and all groups together; the other groups show their heading alone."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """One way to group. `groups_of` names the groups of a run, each with the value of the filter that finds it."""

    title: str
    filter: str
    absent: str
    """The name of the group of runs that are in no other."""
    groups_of: Callable[[Run], list[tuple[str, Any]]]


def _on_device(run: Run) -> list[tuple[str, Any]]:
    return [(f"{run.device.host.name} {run.device.device}", run.device_id)] if run.device else []


def _of_person(run: Run) -> list[tuple[str, Any]]:
    return [(run.requested_by.username, run.requested_by.username)] if run.requested_by else []


def _of_script(run: Run) -> list[tuple[str, Any]]:
    is_own = presentation_of(run).runs_own_code and not run.precision  # which ranks of a model that is known have
    return [(model_name(run.model), run.model)] if is_own else []


GROUPINGS = {
    "model": Grouping("model", "model", "No model", lambda run: [(model_name(run.model), run.model)]),
    "gpu": Grouping("GPU", "gpu", "No GPU", lambda run: [(short_device_name(run.device_name), run.device_name)]),
    "device": Grouping("device", "device", "On no device", _on_device),
    "person": Grouping("person", "user", "No person", _of_person),
    "script": Grouping("script", "model", "Models of the catalogue", _of_script),
    "tag": Grouping("tag", "tag", "Without a tag", lambda run: [(tag.name, tag.name) for tag in run.tags.all()]),
}
"""What `group_by` takes."""


@dataclass(slots=True)
class Group:
    """The runs of one value, and those to show; `filters` finds all of them, or is empty where no filter can."""

    label: str
    filters: dict[str, Any]
    runs: list[Run] = field(default_factory=list)
    shown: list[Run] = field(default_factory=list)

    @property
    def recommended_batch_size(self) -> int | None:
        sizes = [run.recommended_batch_size for run in self.runs]
        return max((size for size in sizes if size is not None), default=None)

    @property
    def waste_bytes(self) -> int | None:
        wastes = [run.current_waste_bytes for run in self.runs]
        return max((waste for waste in wastes if waste is not None), default=None)


def grouped(runs: Iterable[Run], by: str) -> list[Group]:
    grouping = GROUPINGS[by]
    groups: dict[str, Group] = {}
    for run in runs:
        for label, value in grouping.groups_of(run) or [("", None)]:
            if label not in groups:
                groups[label] = Group(label or grouping.absent, {grouping.filter: value} if label else {})
            groups[label].runs.append(run)
    listed = list(groups.values())[:GROUPS_MAX]
    room = SHOWN_MAX
    for group in listed:
        group.shown = group.runs[: min(SHOWN_OF_EACH, room)]
        room -= len(group.shown)
    return listed
