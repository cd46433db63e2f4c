"""Whatever a document shows is recomputed, bounded or refused: each field has its row, and the rows hold."""

from __future__ import annotations

import copy
import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from analysis.presentation.stored.result import StoredResult
from benchmarks.forged_documents import is_refused, originals
from engine.estimate.types import Estimate
from engine.results.result import RunResult
from engine.tune.training import Training
from engine.validation.verdict import ValidationResult
from tests.engine.honest_worker import HonestWorker, document_of
from tests.engine.recompute.shown_figures import TABLE, Kind
from tests.engine.tune.test_allowed_sizes import document_of as document_of_starts
from tests.engine.tune.test_allowed_sizes import tuned

ADDED = {
    RunResult: {"schema": int, "fits": bool, "kinds": dict, "training": Training, "estimate": Estimate},
    ValidationResult: {"schema": int, "verdict": str, "verdict_text": str},
}
"""What the JSON has in addition to the fields, and of which type what is a mapping there."""
ADDED_BY_NAME = {kind.__name__: more for kind, more in ADDED.items()} | {"Check": {"text": str}}
FUNCTION = Path(__file__).resolve().parents[2] / "factories" / "tuned_function.json"


def members(kind: type) -> dict[str, Any]:
    """The members of a dataclass with their types, those of its JSON among them."""
    hints = get_type_hints(kind)
    own = {each.name: hints[each.name] for each in fields(kind)}
    return own | ADDED_BY_NAME.get(kind.__name__, {})


def dataclasses_in(hint: Any) -> Iterator[type]:
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for inner in get_args(hint):
        yield from dataclasses_in(inner)


def walk(kind: type, seen: set[type]) -> Iterator[tuple[type, str]]:
    """Yield every field of a class and of the classes within it."""
    if kind in seen:
        return
    seen.add(kind)
    for name, hint in members(kind).items():
        yield kind, name
        for inner in dataclasses_in(hint):
            yield from walk(inner, seen)


def declared() -> set[str]:
    seen: set[type] = set()
    found = [pair for kind in (RunResult, ValidationResult) for pair in walk(kind, seen)]
    names = {f"{kind.__name__}.{name}" for kind, name in found}
    return {f"{name.split('.')[0]}.*" if f"{name.split('.')[0]}.*" in TABLE else name for name in names}


def test_every_field_of_a_stored_document_has_a_row() -> None:
    assert declared() - TABLE.keys() == set(), "say in shown_figures.py why it can be believed"


def test_every_row_is_of_a_field() -> None:
    unused = {name for name in TABLE.keys() - declared() if not name.endswith(".*")}
    assert unused == set()


def test_pages_read_nothing_of_a_document_that_has_no_row() -> None:
    read = {each.name for each in fields(StoredResult)} - {"unreadable"}
    assert {f"RunResult.{name}" for name in read} - TABLE.keys() == set()


@pytest.mark.parametrize("by", sorted({row.by for row in TABLE.values() if row.by}))
def test_what_recomputes_a_field_is_there(by: str) -> None:
    module, name = by.rsplit(".", 1)
    assert hasattr(__import__(module, fromlist=[name]), name)


Leaf = tuple[str, tuple[Any, ...]]
"""The row of a value, and the path to it in its document."""


def leaves(kind: Any, value: Any, path: tuple[Any, ...], row: str) -> Iterator[Leaf]:
    """Yield the values of a document, by the types that they are of."""
    if get_origin(kind) in (Union, types.UnionType):
        kind = next((each for each in get_args(kind) if each is not type(None)), kind)
    if value is None:
        return
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        for name, hint in members(kind).items():
            if name in value:
                yield from leaves(hint, value[name], (*path, name), f"{kind.__name__}.{name}")
    elif get_origin(kind) is tuple and isinstance(value, list) and any(dataclasses_in(kind)):
        for place, each in enumerate(value):
            yield from leaves(get_args(kind)[0], each, (*path, place), row)
    else:
        yield row, path


def documents() -> dict[str, dict[str, Any]]:
    left_out = document_of(HonestWorker(90, not_together=frozenset({90})))
    function = json.loads(FUNCTION.read_text())["result"]
    _, learned = tuned(lambda size: 512 % size == 0, most_for_memory=150)
    noted = document_of(HonestWorker(528, soak_boundary=500))
    more = {"a size left out": left_out, "learned sizes": document_of_starts(learned), "a note": noted}
    return {**originals(), **more, "function": function}


def chosen() -> list[tuple[str, str, tuple[Any, ...]]]:
    """The first value of each row, in each document."""
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    for name, document in documents().items():
        root = ValidationResult if "checks" in document else RunResult
        for row, path in leaves(root, document, (), ""):
            if row in TABLE and TABLE[row].kind in (Kind.RECOMPUTED, Kind.FIXED):
                found.setdefault((name, row), path)
    return [(name, row, path) for (name, row), path in found.items()]


def changed(value: Any) -> Iterator[Any]:
    """Yield other values: of the same type, and of another one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield value * 2 + 1
    elif isinstance(value, str):
        yield f"{value} and more"
    elif isinstance(value, list):
        yield [*value, value[0] if value else 7]
    elif isinstance(value, dict):
        yield {**value, "more": 1}
    yield "xy" if not isinstance(value, str) else 7
    yield [{}]
    if value is not None:
        yield None


MAY_CLAIM_LESS = {
    **{"Boundary.certified": False, "Speed.method": None, "Training.peak": None},
    **{"Speed.claim": None},  # builds before claims: what is measurable is a figure, else nothing
    **{"Request.kind": None, "Throughput.samples_per_second": None},
}


NOT_IN_THEM = {"Point.peak_reserved_bytes"}
"""No document of these has a card's memory: others have."""


def test_each_row_that_is_recomputed_is_in_a_document() -> None:
    rows = {name for name, row in TABLE.items() if row.kind in (Kind.RECOMPUTED, Kind.FIXED)}
    assert rows - {row for _, row, _ in chosen()} == NOT_IN_THEM


@pytest.mark.slow
def test_no_figure_that_is_recomputed_can_be_changed() -> None:
    whole, believed = documents(), []
    for name, row, path in chosen():
        original: Any = whole[name]
        for step in path:
            original = original[step]
        for value in changed(original):
            forged = copy.deepcopy(whole[name])
            part: Any = forged
            for step in path[:-1]:
                part = part[step]
            part[path[-1]] = value
            if not is_refused(forged) and not (row in MAY_CLAIM_LESS and value is MAY_CLAIM_LESS[row]):
                believed.append((name, row, path, original, value))
    assert believed == []


def test_each_document_is_believed_before_it_is_changed() -> None:
    assert [name for name, document in documents().items() if is_refused(document)] == []
