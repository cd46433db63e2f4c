"""How the tests start trainings: scripts really, on the CPU, and made-up ones, of which nothing is executed."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.trainings.script import run
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.result import TuneResult
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.launch import Watching, start

SCRIPTS = Path(__file__).parent / "scripts"
COMMAND = ("python", "train.py", "{batch_size}")
Noted = tuple[list[Reading], Ended]
"""What is left of a start."""


def started(script: Path, size: int, watching: Watching, *arguments: str, seconds: float = 300) -> Noted:
    """Start a script that takes its batch size first."""
    command = (sys.executable, str(script), "{batch_size}", *arguments)
    return start(partial(begin_command, TuneSpec(command, device="cpu")), size, watching, seconds=seconds)


def tuned(make: Callable[[int], Noted], **settings: Any) -> tuple[list[int], TuneResult]:
    """Tune a training of which each start is made up for its size; the sizes in the order of their starts too."""
    sizes: list[int] = []

    def start_made_up(_: object, batch_size: int, *__: object, **___: object) -> Noted:
        sizes.append(batch_size)
        return make(batch_size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.trainings.script.speed.seats.start", start_made_up)
        return sizes, run.tune(TuneSpec(**{"command": COMMAND, "compare_speed": False, **settings}))


def document_of(found: TuneResult) -> dict[str, Any]:
    """Return its document as if its starts had taken their seconds."""
    document = json.loads(json.dumps(found.to_dict()))
    document["timings"]["total_seconds"] += 1_000.0
    return dict(document)
