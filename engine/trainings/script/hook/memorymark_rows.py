"""Looks through a data set for its largest rows, in the user's process, using only the host."""

from __future__ import annotations

import heapq
import json
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

SEEN_AGAIN = 3  # number of rows that are read twice: if they differ, they are random, and there is no largest
RECOGNISED_BY = 16  # number of rows by whose sizes a later start recognises the data: it may have shuffled its rows
FIRST_ROWS = 1_000  # rows whose time shows whether all rows can be looked through
KEPT_ROWS = 65_536
COLLATED_ROWS = 4_096  # number of the longest texts, whose tokens are counted
NESTED = 8  # deepest nesting of data sets that is followed, as in torch's Subset


def largest_rows(
    torch: Any, dataset: Any, known_path: str, seconds: float, *, collate: Any = None, in_thread: bool = True
) -> Any:
    """Return what is known about the rows of `dataset`, the largest first. `collate` makes a batch of a list of rows.

    The first start stores the answer in the file `known_path`: later starts must train the same rows, or two sizes
    prove no boundary. Data that is made or shuffled anew is looked through in each start. Where a profiler runs, this
    is done `in_thread`, which is not watched. The random generators are not changed.
    """
    stored = None
    if os.path.exists(known_path):
        with open(known_path) as file:
            stored = json.load(file)

    def know() -> Any:
        return stored if stored and _is_as_known(dataset, stored) else _look_through(dataset, seconds, collate)

    states = [(random.setstate, random.getstate()), (torch.set_rng_state, torch.get_rng_state())]
    if numpy := sys.modules.get("numpy"):
        states.append((numpy.random.set_state, numpy.random.get_state()))
    answers: list[Any] = []
    with attributes_restored(dataset):
        if in_thread:
            thread = threading.Thread(target=lambda: answers.append(know()))
            thread.start()
            thread.join()
        else:
            answers.append(know())
    for restore, state in states:
        restore(state)
    if answers[0] is not stored:
        with open(known_path + ".partial", "w") as file:
            json.dump(answers[0], file)
        os.replace(known_path + ".partial", known_path)
    return answers[0]


def _is_as_known(dataset: Any, known: Any) -> bool:
    if known["count"] != length_of(dataset):
        return False
    try:
        return all(sum(elements(dataset[row])) == size for row, size in known.get("recognised_by", ()))
    except Exception:  # noqa: BLE001 - the data set is the user's; looking through it says what is wrong
        return False


@contextmanager
def attributes_restored(dataset: Any) -> Iterator[None]:
    """Restore a data set's attributes after the context: a file opened for the first row belongs to the real reader."""
    before: list[tuple[Any, dict[str, Any]]] = []
    while hasattr(dataset, "__dict__") and len(before) < NESTED:
        before.append((dataset, dict(dataset.__dict__)))
        dataset = dataset.__dict__.get("dataset")
    yield
    for each, attributes in before:
        for name in each.__dict__.keys() - attributes.keys():
            del each.__dict__[name]
        each.__dict__.update(attributes)


def length_of(value: Any) -> int | None:
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None


def _look_through(dataset: Any, seconds: float, collate: Any) -> dict[str, Any]:
    """Return the rows, how many were looked through, and the largest; `problem` where that is impossible."""
    began = time.monotonic()

    def shapes(row: int) -> list[tuple[int, ...]]:
        return shapes_of(dataset[row])

    try:
        count = len(dataset)
        totals, largest = _totals(shapes, range(min(count, FIRST_ROWS)), began + seconds)
        a_row = (time.monotonic() - began) / max(len(totals), 1)
        stride = -(-(count - len(totals)) * a_row // seconds) or 1  # every row, or as many evenly spread as time allows
        rest, more = _totals(shapes, range(len(totals), count, int(stride)), began + 2 * seconds)
        again = {row: sum(elements(dataset[row])) for row, _ in zip(totals, range(SEEN_AGAIN), strict=False)}
        is_text = count > 0 and has_text(dataset[0])
    except Exception as error:  # noqa: BLE001 - the data set is the user's: any class of error, and it is said
        return {
            "problem": f"{type(error).__name__}: {error}"[:200],
            "rows": [],
            "looked": 0,
            "count": length_of(dataset),
        }
    unknown = {"rows": [], "looked": 0, "count": count}
    if any(size != totals[row] for row, size in again.items()):
        return {"problem": "a row has another size each time"} | unknown
    if totals and not any(totals.values()):  # as the numbers of a graph's nodes
        return {"problem": "its rows have no size: the loader makes each batch of them"} | unknown
    totals |= rest
    for field, found in more.items():
        largest[field] = max(found, largest.get(field, (0, 0)))
    rows, leading = _ordered(totals, largest)
    known = {
        "count": count,
        "looked": len(totals),
        "seconds": time.monotonic() - began,
        "largest": max(totals.values(), default=0),
        "smallest": min(totals.values(), default=0),
        "rows": rows,
        "leading": leading,
        "is_text": is_text,
        "recognised_by": [(row, totals[row]) for row in rows[:RECOGNISED_BY]],
    }
    return known | _ordered_by_collated(dataset, collate, rows, seconds / 2) if is_text and collate else known


def _ordered(totals: dict[int, int], largest: dict[int, tuple[int, int]]) -> tuple[list[int], int]:
    """Return the rows, the largest first, and how many lead: that of most elements, and the largest of each part."""
    order = heapq.nlargest(KEPT_ROWS, totals, key=totals.__getitem__)
    leading = list(dict.fromkeys([*order[:1], *(row for _, row in largest.values())]))
    return [*leading, *(row for row in order if row not in leading)], len(leading)


def _ordered_by_collated(dataset: Any, collate: Any, rows: list[int], seconds: float) -> dict[str, Any]:
    """Order the first of `rows` by what `collate` makes of each, such as the tokens of a text; nothing where it cannot.

    A text of many characters may have few tokens. `is_text` remains where the script tokenises a whole batch later.
    """
    try:
        is_text = has_text(collate([dataset[rows[0]]]))
        totals, largest = _totals(
            lambda row: shapes_of(collate([dataset[row]])), rows[:COLLATED_ROWS], time.monotonic() + seconds
        )
    except Exception:  # noqa: BLE001 - the user's collate function may refuse one row alone; then characters decide
        return {}
    first, leading = _ordered(totals, largest)
    others = [row for row in rows if row not in totals]
    return {"rows": [*first, *others], "leading": leading, "is_text": is_text, "collated": len(totals)}


def _totals(
    shapes: Callable[[int], list[tuple[int, ...]]], rows: Iterable[int], until: float
) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    totals: dict[int, int] = {}
    largest: dict[int, tuple[int, int]] = {}
    for row in rows:
        found = shapes(row)
        totals[row] = sum(map(prod, found))
        for field, size in enumerate(size for shape in found for size in (prod(shape), *shape)):
            if size > largest.get(field, (-1, 0))[0]:
                largest[field] = (size, row)
        if time.monotonic() > until:
            break
    return totals, largest


def has_text(value: Any) -> bool:
    if isinstance(getattr(value, "shape", None), tuple):
        return False
    if callable(getattr(value, "values", None)):
        return any(map(has_text, value.values()))
    return isinstance(value, (str, bytes)) or (isinstance(value, (list, tuple)) and any(map(has_text, value)))


def elements(value: Any) -> list[int]:
    return [prod(shape) for shape in shapes_of(value)]


def shapes_of(value: Any) -> list[tuple[int, ...]]:
    """Return the shape of each part of a row: tensors, arrays, lists of numbers, texts and pictures.

    A batch is as wide as its widest picture and as high as its highest, which may be two different ones.
    """
    if isinstance(value, (str, bytes)):
        return [(len(value),)]
    if isinstance(shape := getattr(value, "shape", None), tuple):  # torch.Size is a subclass of tuple
        return [tuple(map(int, shape))]
    if callable(getattr(value, "values", None)):
        return [shape for each in value.values() for shape in shapes_of(each)]
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (int, float)):
            return [(len(value),)]
        return [shape for each in value for shape in shapes_of(each)]
    size = getattr(value, "size", None)
    return [size] if isinstance(size, tuple) else []  # width and height of a picture
