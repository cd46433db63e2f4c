"""Looks through a data set for its largest rows, in the user's own process, on the host alone."""

from __future__ import annotations

import heapq
import json
import os
import random
import sys
import threading
import time
from typing import Any

FIRST_ROWS = 1_000  # from their time it is known whether all rows can be looked through
KEPT_ROWS = 65_536


def largest_rows(torch: Any, dataset: Any, kept: str, seconds: float) -> Any:
    """Return what is known of the rows of `dataset`, the largest first.

    The first start looks them through and keeps the answer in the file `kept`: later starts must train the same
    rows, or two sizes would prove no boundary. It runs in a thread of its own, which the profiler does not watch, and
    leaves the random generators as they were.
    """
    if os.path.exists(kept):
        with open(kept) as file:
            return json.load(file)
    states = [(random.setstate, random.getstate()), (torch.set_rng_state, torch.get_rng_state())]
    if numpy := sys.modules.get("numpy"):
        states.append((numpy.random.set_state, numpy.random.get_state()))
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(_look_through(dataset, seconds)))
    thread.start()
    thread.join()
    for restore, state in states:
        restore(state)
    with open(kept + ".partial", "w") as file:
        json.dump(answers[0], file)
    os.replace(kept + ".partial", kept)
    return answers[0]


def _look_through(dataset: Any, seconds: float) -> dict[str, Any]:
    """Return the rows, how many were looked through, and the largest of them; `problem` where that is impossible."""
    began = time.monotonic()
    try:
        count = len(dataset)
        totals, largest = _totals(dataset, range(min(count, FIRST_ROWS)), began + seconds)
        a_row = (time.monotonic() - began) / max(len(totals), 1)
        stride = -(-(count - len(totals)) * a_row // seconds) or 1  # every row, or evenly spread as many as time allows
        rest, more = _totals(dataset, range(len(totals), count, int(stride)), began + 2 * seconds)
    except Exception as error:  # noqa: BLE001 - the data set is the user's: any class of error, and it is said
        return {"problem": f"{type(error).__name__}: {error}"[:200], "rows": [], "looked": 0}
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
    """Return the elements of each row by its number, and of each part of a row the largest with its row."""
    totals: dict[int, int] = {}
    largest: dict[int, tuple[int, int]] = {}
    for row in rows:
        sizes = elements(dataset[row])
        totals[row] = sum(sizes)
        for field, size in enumerate(sizes):
            if size > largest.get(field, (-1, 0))[0]:
                largest[field] = (size, row)
        if time.monotonic() > until:
            break
    return totals, largest


def elements(value: Any) -> list[int]:
    """Return how many elements each part of a row has: of tensors, arrays, lists of numbers, texts and pictures."""
    if callable(numel := getattr(value, "numel", None)):
        return [numel()]
    if isinstance(value, (str, bytes)):
        return [len(value)]
    if callable(getattr(value, "values", None)):
        return [size for each in value.values() for size in elements(each)]
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (int, float)):
            return [len(value)]
        return [size for each in value for size in elements(each)]
    size = getattr(value, "size", None)
    if isinstance(size, tuple):  # of a picture: width and height
        return [size[0] * size[1]]
    return [size] if isinstance(size, int) else []
