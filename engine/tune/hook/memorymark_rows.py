"""Looks through a data set for its largest rows, in the user's own process, on the host alone."""

from __future__ import annotations

import heapq
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

SEEN_AGAIN = 3  # rows that are read twice: random ones have no largest
FIRST_ROWS = 1_000  # from their time it is known whether all rows can be looked through
KEPT_ROWS = 65_536
NESTED = 8  # data sets within each other, as torch's Subset


def largest_rows(torch: Any, dataset: Any, kept: str, seconds: float, *, in_thread: bool = True) -> Any:
    """Return what is known of the rows of `dataset`, the largest first.

    The first start looks them through and keeps the answer in the file `kept`: later starts must train the same
    rows, or two sizes would prove no boundary. Where a profiler runs this is done `in_thread`, a thread of its own that
    is not watched. The random generators are left as they were.
    """
    if os.path.exists(kept):
        with open(kept) as file:
            known = json.load(file)
        if known["count"] == length_of(dataset):  # a script may make other data sets in each start
            return known
    states = [(random.setstate, random.getstate()), (torch.set_rng_state, torch.get_rng_state())]
    if numpy := sys.modules.get("numpy"):
        states.append((numpy.random.set_state, numpy.random.get_state()))
    answers: list[Any] = []
    with attributes_restored(dataset):
        if in_thread:
            thread = threading.Thread(target=lambda: answers.append(_look_through(dataset, seconds)))
            thread.start()
            thread.join()
        else:
            answers.append(_look_through(dataset, seconds))
    for restore, state in states:
        restore(state)
    with open(kept + ".partial", "w") as file:
        json.dump(answers[0], file)
    os.replace(kept + ".partial", kept)
    return answers[0]


@contextmanager
def attributes_restored(dataset: Any) -> Iterator[None]:
    """Give a data set, and the one that it is a part of, its attributes back as they were.

    What it opens with its first row, as a file or a connection to a database, belongs to the thread or the worker
    process that reads the rows.
    """
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
    """Return how many there are; None where that is not known."""
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None


def _look_through(dataset: Any, seconds: float) -> dict[str, Any]:
    """Return the rows, how many were looked through, and the largest of them; `problem` where that is impossible."""
    began = time.monotonic()
    try:
        count = len(dataset)
        totals, largest = _totals(dataset, range(min(count, FIRST_ROWS)), began + seconds)
        a_row = (time.monotonic() - began) / max(len(totals), 1)
        stride = -(-(count - len(totals)) * a_row // seconds) or 1  # every row, or evenly spread as many as time allows
        rest, more = _totals(dataset, range(len(totals), count, int(stride)), began + 2 * seconds)
        again = {row: sum(elements(dataset[row])) for row, _ in zip(totals, range(SEEN_AGAIN), strict=False)}
    except Exception as error:  # noqa: BLE001 - the data set is the user's: any class of error, and it is said
        return {
            "problem": f"{type(error).__name__}: {error}"[:200],
            "rows": [],
            "looked": 0,
            "count": length_of(dataset),
        }
    if any(size != totals[row] for row, size in again.items()):
        return {"problem": "a row has another size each time", "rows": [], "looked": 0, "count": count}
    totals |= rest
    for field, found in more.items():
        largest[field] = max(found, largest.get(field, (0, 0)))
    first = list(dict.fromkeys(row for _, row in largest.values()))  # of each of a row's parts the largest
    rows = [*first, *(row for row in heapq.nlargest(KEPT_ROWS, totals, key=totals.__getitem__) if row not in first)]
    return {
        "count": count,
        "looked": len(totals),
        "seconds": time.monotonic() - began,
        "largest": max(totals.values(), default=0),
        "smallest": min(totals.values(), default=0),
        "rows": rows,
    }


def _totals(dataset: Any, rows: range, until: float) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    """Return the elements of each row by its number, and of each part and dimension the largest with its row."""
    totals: dict[int, int] = {}
    largest: dict[int, tuple[int, int]] = {}
    for row in rows:
        shapes = shapes_of(dataset[row])
        totals[row] = sum(map(prod, shapes))
        for field, size in enumerate(size for shape in shapes for size in (prod(shape), *shape)):
            if size > largest.get(field, (-1, 0))[0]:
                largest[field] = (size, row)
        if time.monotonic() > until:
            break
    return totals, largest


def elements(value: Any) -> list[int]:
    """Return how many elements each part of a row has."""
    return [prod(shape) for shape in shapes_of(value)]


def shapes_of(value: Any) -> list[tuple[int, ...]]:
    """Return the shape of each part of a row: of tensors, arrays, lists of numbers, texts and pictures.

    A batch is as wide as its widest picture and as high as its highest, which may be two.
    """
    if isinstance(value, (str, bytes)):
        return [(len(value),)]
    if isinstance(shape := getattr(value, "shape", None), tuple):  # of torch a tuple's subclass
        return [tuple(map(int, shape))]
    if callable(getattr(value, "values", None)):
        return [shape for each in value.values() for shape in shapes_of(each)]
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (int, float)):
            return [(len(value),)]
        return [shape for each in value for shape in shapes_of(each)]
    size = getattr(value, "size", None)
    return [size] if isinstance(size, tuple) else []  # of a picture: width and height
