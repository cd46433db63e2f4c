"""After a long first start its parts are said, and what shortens the longest of them."""

import pytest

from engine.tune.evidence import Ended
from engine.tune.parts import describe_parts
from engine.tune.reading import Reading
from engine.tune.spec import FUNCTION, FunctionSpec, TuneSpec, function_command

COMMAND = TuneSpec(("python", "train.py", "{batch_size}"))
BEGAN = 1_000.0
IMPORT = "a start takes 42 s: 22 s until torch was imported, 12 s data and model"


def noted(armed: float, forward: float | None, *steps: float) -> Reading:
    """Return the marks of a process, at these seconds after its start began."""
    marks = [[BEGAN + armed, "armed", "2.13.0", ["train.py"]]]
    marks += [] if forward is None else [[BEGAN + forward, "phase", "forward", None, None]]
    return Reading({"marks": [*marks, *([BEGAN + at, "step", 7] for at in steps)]})


def said(*readings: Reading, spec: TuneSpec | FunctionSpec = COMMAND, wall_seconds: float = 42.0) -> str | None:
    return describe_parts(spec, readings, Ended(began=BEGAN, wall_seconds=wall_seconds))


def test_the_parts_of_a_long_start_are_named_in_their_order() -> None:
    assert said(noted(12, 34, 37, 38, 39, 41)) == (
        "a start takes 42 s: 12 s until torch was imported, 22 s data and model, 3.0 s the first step, "
        "4.0 s the others, 1.0 s to its end; fewer rows shorten it"
    )


def test_a_part_that_took_no_time_is_left_out() -> None:
    assert said(noted(2, 2.1, 3, 41.8)) == (
        "a start takes 42 s: 2.0 s until torch was imported, 0.9 s the first step, 39 s the others"
    )


def test_a_training_without_a_forward_pass_that_was_seen_has_its_first_step_with_data_and_model() -> None:
    assert "36 s data and model, 4.0 s the others" in (said(noted(2, None, 38, 42)) or "")


def test_of_several_processes_the_one_that_trained_tells() -> None:
    assert said(noted(1, None), noted(12, 34, 37, 41)) == said(noted(12, 34, 37, 41))


def test_nothing_is_said_of_a_quick_start_or_of_one_that_made_no_step() -> None:
    assert said(noted(1, 2, 3, 4), wall_seconds=19.0) is None
    assert said(noted(1, 2)) is None
    assert said() is None
    emulated = TuneSpec(("torchrun", "train.py", "{batch_size}"), emulate_ranks=8)
    assert said(noted(12, 34, 37, 41), spec=emulated) is None


@pytest.mark.parametrize(
    ("spec", "is_helped"),
    [
        (COMMAND, False),
        (TuneSpec(function_command("train:make_step"), batch=FUNCTION), True),
        (TuneSpec(function_command("train:make_step", "/opt/python"), batch=FUNCTION), False),
        (FunctionSpec("train:make_step"), True),
        (FunctionSpec("train:make_step", starting="warm"), False),
    ],
)
def test_imports_are_shortened_where_a_function_can_be_started_warm(spec: TuneSpec | FunctionSpec, is_helped: bool):
    text = said(noted(22, 34, 37, 41), spec=spec)
    assert text is not None
    assert text.startswith(IMPORT)
    assert text.endswith("; --warm (in Python warm=True) imports once") == is_helped
