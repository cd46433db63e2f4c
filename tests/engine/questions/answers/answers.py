"""Compares a document with the answer that its facts give."""

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from engine.questions.answers.command import CommandFacts
from engine.questions.answers.sizes import boundary_of
from engine.questions.kinds import answered

RESULTS = Path(__file__).resolve().parents[4] / "benchmarks" / "data" / "results"


def originals() -> dict[str, dict[str, Any]]:
    """Return results of real runs, by their names."""
    return {path.stem: json.loads(path.read_text())["result"] for path in sorted(RESULTS.glob("*.json"))}


def keeps_its_boundary(document: dict[str, Any]) -> bool:
    """Whether the starts of a command give the boundary that it has, whatever time they took."""
    given = json.loads(json.dumps(document))
    found = asdict(boundary_of(CommandFacts.read(given)))
    return bool(json.loads(json.dumps(found)) == given["boundary"])


def differing(document: dict[str, Any]) -> list[str]:
    """Name the members of a document that its facts give otherwise; one that a later version added is not counted."""
    return [path.lstrip(".") for path in _differing(document, answered(document), "")]


def _differing(given: Any, found: Any, path: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(found, dict):
        for name in given:
            yield from _differing(given[name], found.get(name), f"{path}.{name}")
    elif isinstance(given, (list, tuple)) and isinstance(found, list) and len(given) == len(found):
        for place, (one, other) in enumerate(zip(given, found, strict=True)):
            yield from _differing(one, other, f"{path}[{place}]")
    elif isinstance(given, float) and isinstance(found, (int, float)):
        if not math.isclose(given, found, rel_tol=1e-9, abs_tol=1e-12):
            yield path
    elif given != found:
        yield path


def changed(path: str, value: Any, document: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with a value at a path such as `probes.0.steps`; a function makes it of the one there."""
    copied = copy.deepcopy(document)
    *way, last = (int(part) if part.removeprefix("-").isdecimal() else part for part in path.split("."))
    part: Any = copied
    for step in way:
        part = part[step]
    part[last] = value(part[last]) if callable(value) else value
    return copied
