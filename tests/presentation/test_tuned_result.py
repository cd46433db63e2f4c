"""A tuned training tells how fast each size was, and a speed-up only where starts in turns show it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from analysis.presentation.headline import headline
from analysis.presentation.nothing_to_gain import nothing_to_gain
from analysis.presentation.result_summary import describe_timing, figures, loader_limit, paste, training_rows
from analysis.presentation.stored_result import StoredResult, read_result
from engine.result import RunResult
from engine.tune.spec import TuneSpec, function_command
from engine.tune.training import Throughput, Training
from tests.factories.speeds import make_timed_result, make_unmeasurable_result

COMMAND = ("python", "train.py", "{batch_size}")
TURNS = {"batch_sizes": [4, 8], "pairs": [[8.0, 8.1]] * 6, "ratio": {"low": 0.99, "value": 1.01, "high": 1.02}}


def tuned(result: RunResult, spec: TuneSpec | None = None, **training: Any) -> StoredResult:
    spec = spec or TuneSpec(COMMAND, current_batch_size=4, compare_speed=True)
    consumed = Training(1, 1, (9,), None, 0.1, ((4, 1.0),), (), **training)
    document = replace(result, spec=spec).to_dict()
    return read_result({**document, "training": asdict(consumed)})


def test_a_speed_up_of_starts_in_turns_is_told_with_its_interval() -> None:
    result = tuned(make_timed_result(), turns=TURNS)
    assert "Recommended: 8, 1.39x as fast as your 4 (1.36 to 1.42x)" in str(headline(result))
    assert figures(result)[0].interval == "1.36 to 1.42x"
    assert "12 pairs of starts; the intervals" in describe_timing(result)


def test_a_size_that_is_kept_because_the_other_is_no_faster_names_that_one_alone() -> None:
    timed = make_timed_result(1.0, 1.0, 1.0)
    result = tuned(replace(timed, recommended=timed.current, fastest=None), turns=TURNS)
    assert str(headline(result)).endswith("Keep your 4: 8 is not more than 3 % faster.")
    kept = nothing_to_gain(result)
    assert kept is not None
    assert (kept.text, kept.others) == ("Batch 8 is 1.01x as fast as your 4 (0.99 to 1.02x).", ())


def test_a_comparison_that_shows_nothing_says_why_where_it_was_requested() -> None:
    assert "between 0.8x and 13x" in str(headline(tuned(make_unmeasurable_result())))
    not_requested = TuneSpec(COMMAND, current_batch_size=4)
    assert "between" not in str(headline(tuned(make_unmeasurable_result(), not_requested)))


def test_many_starts_are_counted_after_the_first_ones() -> None:
    result = tuned(make_timed_result())
    assert result.training is not None
    many = replace(result, training=replace(result.training, starts=((4, 1.0),) * 12))
    assert dict(training_rows(many))["Starts"].endswith("4 in 1.0 s and 2 more")


def test_a_loader_that_is_the_limit_is_named() -> None:
    waits = (Throughput(8, 10.0, waiting_fraction=0.7),)
    assert "70 % of each step with batch 8" in (loader_limit(tuned(make_timed_result(), throughputs=waits)) or "")
    assert loader_limit(tuned(make_timed_result())) is None


def test_a_function_is_pasted_as_a_call() -> None:
    spec = TuneSpec(function_command("lab.train:make_step"), batch="function", current_batch_size=4)
    assert paste(tuned(make_timed_result(), spec)) == "from lab.train import make_step\n\nstep = make_step(8)"
