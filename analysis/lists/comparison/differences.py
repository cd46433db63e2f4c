"""Facts of several runs as rows: the different, the equal, and those that affect a comparison."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from analysis.formatting import duration, number, round_bytes, round_percent, usd
from analysis.lists.comparison.compared_run import ComparedRun
from analysis.lists.environment import COMPARABILITY_FACTS, NONE, NOT_RECORDED, environment_title
from analysis.presentation import labels
from engine.estimate.spec import OWN
from engine.settings.catalog import WORKLOADS
from engine.settings.setting import Role
from engine.settings.spec import DEFAULTS, SETTINGS, TRAINING_SETTINGS
from engine.trainings.script.spec import FunctionSpec, TuneSpec


@dataclass(frozen=True, slots=True)
class Row:
    """One fact with its text for every run, in their order. A missing fact does not count as a difference."""

    name: str
    values: tuple[str, ...]

    @property
    def known(self) -> list[str]:
        return [value for value in dict.fromkeys(self.values) if value != NOT_RECORDED]

    @property
    def differs(self) -> bool:
        return len(self.known) > 1


def setting_rows(subjects: Sequence[ComparedRun]) -> list[Row]:
    rows = [Row("Model", tuple(subject.model_name for subject in subjects))]
    rows.append(Row("Input", tuple(_of_model(subject, _input(subject.spec)) for subject in subjects)))
    for name, each in SETTINGS.items():
        if each.role not in (Role.WORKLOAD, Role.PLACE):
            label = f"{each.label} (assumed)" if each.role is Role.ASSUMPTION else each.label
            is_of_training = each.role is Role.TRAINING
            values = ((one, _setting(one.spec, name)) for one in subjects)
            rows.append(Row(label, tuple(_of_model(one, text) if is_of_training else text for one, text in values)))
    others = dict.fromkeys(key for subject in subjects for key in subject.spec if key not in SETTINGS)
    of_others = [
        Row(key.replace("_", " ").capitalize(), tuple(_other(subject, key) for subject in subjects))
        for key in others
        if key not in _NAMED_ALREADY
    ]
    return rows + [row for row in of_others if row.known]


def environment_rows(subjects: Sequence[ComparedRun]) -> list[Row]:
    names = dict.fromkeys([*COMPARABILITY_FACTS, *(name for subject in subjects for name in subject.facts)])
    rows = [Row(name, tuple(subject.facts.get(name, NOT_RECORDED) for subject in subjects)) for name in names]
    return [row for row in rows if set(row.values) != {NOT_RECORDED}]


def mismatches(subjects: Iterable[ComparedRun]) -> dict[str, str]:
    """Find facts of the environment that differ between runs with figures, and may affect the figures.

    Written with the runs of each value: "2.13.0 (runs 3, 8) · 2.12.1 (run 9)". A fact not recorded is no difference.
    """
    compared = [subject for subject in subjects if subject.outcome is not None]
    found = {name: _groups(compared, name) for name in COMPARABILITY_FACTS}
    return {
        name: " · ".join(f"{value} ({_runs(ids)})" for value, ids in groups.items())
        for name, groups in found.items()
        if len(groups) > 1
    }


def workload_groups(subjects: Iterable[ComparedRun]) -> list[tuple[str, str]]:
    """Write the runs of each workload and what it is: ("run 3", "BERT tiny, 128 tokens"); empty where there is one."""
    groups: dict[tuple[str, str], list[int]] = {}
    for subject in subjects:
        groups.setdefault(subject.workload, []).append(subject.run_id)
    if len(groups) < 2:
        return []
    return [(_runs(ids), ", ".join(filter(None, workload))) for workload, ids in groups.items()]


def describe_sameness(subjects: Iterable[ComparedRun]) -> str:
    compared = [subject for subject in subjects if subject.outcome is not None]
    none_has = {name for name in COMPARABILITY_FACTS if {one.facts.get(name) for one in compared} == {NONE}}
    is_known = {
        name: all(subject.facts.get(name, NOT_RECORDED) != NOT_RECORDED for subject in compared)
        for name in COMPARABILITY_FACTS
        if name not in none_has  # a CPU has no CUDA: nothing that could be the same
    }
    same = ", ".join(_in_a_sentence(name) for name, known in is_known.items() if known)
    unknown = ", ".join(_in_a_sentence(name) for name, known in is_known.items() if not known)
    return f"Same {same}.{f' Not recorded: {unknown}.' if unknown else ''}"


def _in_a_sentence(name: str) -> str:
    if name == environment_title("is_shared"):
        return "other users of the device"
    return name if name.isupper() else name.lower()


def _groups(subjects: Iterable[ComparedRun], name: str) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for subject in subjects:
        value = subject.facts.get(name, NOT_RECORDED)
        if not ((subject.is_predicted or subject.runs_own_code) and value == NOT_RECORDED):
            groups.setdefault(value, []).append(subject.run_id)
    return groups


def _runs(ids: Sequence[int]) -> str:
    return f"{'run' if len(ids) == 1 else 'runs'} {', '.join(map(str, ids))}"


Spec = Mapping[str, Any]
IN_SHORT_DESCRIPTION = frozenset({"Model", "Input", *(SETTINGS[name].label for name in TRAINING_SETTINGS)})
"""Facts that are already in the short line of a run's model and settings."""


def _plain(value: Any) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    return number(value) if isinstance(value, int | float) else str(value)


def _input(spec: Spec) -> str:
    if spec.get("model") in WORKLOADS:
        return labels.describe_input(spec)
    return _plain(spec.get("sequence_length") or spec.get("image_size") or None)


_OF_SCRIPTS = {field.name for spec in (TuneSpec, FunctionSpec) for field in fields(spec)} - SETTINGS.keys()
_NAMED_ALREADY = frozenset({"name", "tried", *OWN})
"""A script's name stands as its model, an estimate's card as its device, and what a race tried as its rows."""


def _of_model(subject: ComparedRun, text: str) -> str:
    return NOT_RECORDED if subject.runs_own_code else text


def _other(subject: ComparedRun, key: str) -> str:
    value = subject.spec.get(key)
    is_of_other_kind = (key in _OF_SCRIPTS) != subject.runs_own_code
    if value is None and (is_of_other_kind or key in _OF_SCRIPTS):
        return NOT_RECORDED
    if (key, value) == ("batch", "template"):  # the command itself shows where the size gets in
        return NOT_RECORDED
    return shlex.join(map(str, value)) if isinstance(value, list | tuple) else _plain(value)


_TEXTS: dict[str, Callable[[Any], str]] = {
    "memory_limit_bytes": round_bytes,
    "reserve_fraction": round_percent,
    "reserve_bytes": round_bytes,
    "price_per_hour_usd": usd,
    "time_budget_seconds": duration,
}
_WITHOUT = {"memory_limit_bytes": "none", "reserve_fraction": "not requested", "current_batch_size": NOT_RECORDED}


def _setting(spec: Spec, name: str) -> str:
    value = spec.get(name)
    if value is None and name in _WITHOUT:
        return _WITHOUT[name]
    value = DEFAULTS[name] if value is None else value
    if isinstance(value, str):
        return SETTINGS[name].text_of(value)
    return _plain(None) if value is None else _TEXTS.get(name, _plain)(value)
