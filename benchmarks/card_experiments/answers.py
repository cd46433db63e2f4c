"""The file of answers: JSON lines, appended as soon as there is one. It is all the state there is.

A line of kind "part" is what one part saw, a line of kind "answer" an experiment's verdict. A later line replaces an
earlier one of the same experiment and part.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.card_experiments.setting import Machine, Seen

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = (ROOT / "benchmarks" / "results", ROOT / "docs")


class Refused(Exception):
    """Why these answers may not be written there, in a sentence."""


def is_stand_in() -> bool:
    """Whether the cards of this process are made up (tests/cuda_stand_in)."""
    return "STAND_IN_FOLDER" in os.environ


def check_is_not_published(path: Path, is_stand_in: bool) -> None:
    """Refuse to put figures of a made-up card where people take them for a card's."""
    if is_stand_in and any(path.resolve().is_relative_to(folder) for folder in PUBLISHED):
        raise Refused(
            f"{path}: figures of the stand-in are no card's; they go neither into benchmarks/results nor into docs"
        )


def default_path(machine: Machine) -> Path:
    """By the card's name among the results; on the stand-in in its own folder."""
    if machine.is_stand_in:
        return Path(os.environ["STAND_IN_FOLDER"]) / "first_hour.jsonl"
    name = re.sub(r"[^a-z0-9]+", "-", machine.gpu.lower()).strip("-")
    return PUBLISHED[0] / f"first_hour.{name}.jsonl"


class Answers:
    """What is known so far, and where it is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = read(path)

    def check(self, machine: Machine, scale: str) -> None:
        """Refuse to mix cards of different kinds, or scales, in one file."""
        for line in self.lines:
            was = Machine(**line["machine"])
            if was.kind != machine.kind or line["scale"] != scale:
                raise Refused(
                    f"{self.path} holds answers of {was.gpu}, driver {was.driver}, torch {was.torch}, scale "
                    f"{line['scale']}; this is {machine.gpu}, driver {machine.driver}, torch {machine.torch}, scale "
                    f"{scale}: name another file with --output"
                )

    def append(self, line: Mapping[str, Any]) -> None:
        """Keep a line: on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = _whole_lines_bytes(self.path)
        with self.path.open("ab") as file:
            file.truncate(whole)  # a line that was cut off with its writer
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(dict(line))

    def seen(self) -> dict[int, dict[str, Seen]]:
        """What each part saw, by experiment and part."""
        found: dict[int, dict[str, Seen]] = {}
        for line in self.lines:
            if line["kind"] == "part":
                found.setdefault(line["number"], {})[line["part"]] = line["seen"]
            elif line["kind"] == "forgotten":
                found.pop(line["number"], None)
        return found

    def parts(self, number: int) -> dict[str, dict[str, Any]]:
        """The lines of an experiment's parts."""
        found: dict[str, dict[str, Any]] = {}
        for line in self.lines:
            if line["number"] == number and line["kind"] == "part":
                found[line["part"]] = line
            elif line["number"] == number and line["kind"] == "forgotten":
                found.clear()
        return found

    def answers(self) -> dict[int, dict[str, Any]]:
        """The newest answer of each experiment."""
        found: dict[int, dict[str, Any]] = {}
        for line in self.lines:
            if line["kind"] == "answer":
                found[line["number"]] = line
            elif line["kind"] == "forgotten":
                found.pop(line["number"], None)
        return found


def read(path: Path) -> list[dict[str, Any]]:
    """Every whole line; none where there is no file."""
    if not path.exists():
        return []
    content = path.read_bytes()[: _whole_lines_bytes(path)]
    return [json.loads(line) for line in content.splitlines()]


def _whole_lines_bytes(path: Path) -> int:
    return path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
