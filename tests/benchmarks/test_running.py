"""A part of the first hour in its own process: what it prints, what it dies of, and its time."""

from __future__ import annotations

from benchmarks.card_experiments.running import run_part
from benchmarks.card_experiments.setting import Part
from tests.benchmarks.synthetic_card import setting

LONG = 120.0


def _python(code: str, **environment: str) -> Part:
    return Part("part", ("-c", code), LONG, environment)


def test_the_last_line_is_what_a_program_saw() -> None:
    seen = run_part(
        _python("import os; print('words'); print('{\"a\": %s}' % os.environ['A'])", A="7"), setting(), LONG
    )
    assert seen == {"a": 7, "exit_status": 0}


def test_a_program_that_dies_leaves_its_last_words() -> None:
    seen = run_part(_python("raise KeyError('the one that is missing')"), setting(), LONG)
    assert "the one that is missing" in seen["error"]
    assert seen["exit_status"] == 1


def test_a_program_that_takes_too_long_is_ended_and_said_to_be() -> None:
    seen = run_part(_python("import time; print('{}', flush=True); time.sleep(1000)"), setting(), 1.0)
    assert seen["timed_out"]
    assert seen["error"] == "had not ended after 1 s"
    assert seen["exit_status"] == -15


def test_an_engine_that_refuses_is_kept_with_its_sentence() -> None:
    part = Part("run", ("-m", "engine", "no-such-model", "cpu", "--events"), LONG)
    seen = run_part(part, setting(), LONG)
    assert seen["result"] is None
    assert "no-such-model" in seen["error"]
