"""A tuned training tells how fast each size was, and a speed-up only where starts in turns show it."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from analysis.presentation.result_summary import (
    headline,
)
from engine.describe.key_figures import figures, nothing_to_gain
from engine.describe.ranks import describe_imbalance, rank_peaks
from engine.describe.result import describe_timing
from engine.facts.not_compared import NotCompared
from engine.facts.result import Outcome, Probe, Purpose, RunResult
from engine.facts.speed_rounds import SpeedBlock, SpeedRound, Stage
from engine.questions.documents.measured import Measured
from engine.questions.documents.stored import StoredSpec
from engine.questions.documents.words import loader_limit, own_setting, paste, training_rows
from engine.settings.spec import RunSpec
from engine.trainings.script.ranked_spec import ranked_spec
from engine.trainings.script.result import Throughput, Training
from engine.trainings.script.spec import TuneSpec, function_command
from tests.factories.speeds import make_timed_result, make_unmeasurable_result

COMMAND = ("python", "train.py", "{batch_size}")


def timed_in_turns(result: RunResult, times_as_fast: tuple[float, ...]) -> RunResult:
    """Add six pairs of starts of 4 and 8; `times_as_fast` is how much faster 8 was in each."""
    steps = {4: (1.0,) * 6, 8: tuple(2.0 / times for times in times_as_fast)}
    probes = [Probe(n, Outcome.FITS, Purpose.TIMING, timed_step_seconds=steps[n]) for n in steps]
    rounds = [
        SpeedRound(Stage.EVALUATION, 9.0, tuple(SpeedBlock(n, steps[n][pair], pair, 1) for n in steps))
        for pair in range(6)
    ]
    return replace(result, probes=(*result.probes, *probes), speed_rounds=tuple(rounds))


def tuned(result: RunResult, spec: TuneSpec | None = None, **training: Any) -> Measured:
    spec = spec or TuneSpec(COMMAND, current_batch_size=4)
    consumed = Training(1, 1, (9,), None, 0.1, ((4, 1.0),), (), **training)
    document = replace(result, spec=spec).to_dict()
    return Measured.from_dict({**document, "training": asdict(consumed)})


def test_a_page_of_emulated_ranks_says_so_and_has_the_peak_of_each() -> None:
    consumed = Training(1, 8, (7, 7, 9), None, None, ((4, 1.0),), ())
    spec = TuneSpec(COMMAND, current_batch_size=4, emulate_ranks=8)
    document = replace(make_unmeasurable_result(), spec=spec).to_dict()
    result = Measured.from_dict({**document, "training": asdict(consumed)})
    rows = dict(training_rows(result))
    assert rows["Ranks"].startswith("Emulated: one device stood in for ranks 0, 1 and 7 of 8, one after the other")
    assert rows["Imbalance"] == "rank 7 held 2 B more than rank 0, 28.6 %"
    assert "(emulated, 3 of 8 ranks)" in headline(result).sentence
    assert (result.grade, result.is_emulated) == ("emulated", True)


def test_of_several_ranks_the_answer_is_that_of_one_and_the_global_batch_stands_beside_it() -> None:
    spec = ranked_spec(RunSpec("bert-tiny", ranks=2, strategy="ddp", current_batch_size=4, accumulation_steps=2))
    result = tuned(make_timed_result(), spec)
    answer = headline(result)
    assert answer.sentence == "Use batch size 8 per rank: 1.39x as fast as your 4 (1.36 to 1.42x)."
    assert answer.notes[0] == "The global batch is 32: 8 on each of 2 ranks, 2 micro-batches each."
    assert "per_device_train_batch_size=8" in (paste(result) or "")


def test_a_difference_of_ranks_that_would_be_written_as_none_has_no_share() -> None:
    assert describe_imbalance(rank_peaks({}, [265_499_716, 265_499_724])) == "rank 1 held 8 B more than rank 0"
    assert describe_imbalance(rank_peaks({}, [9, 9])) == "all held the same"
    assert describe_imbalance(rank_peaks({}, [9])) == ""


def test_a_speed_up_of_starts_in_turns_is_told_with_its_interval() -> None:
    result = tuned(make_timed_result())
    assert headline(result).sentence == "Use batch size 8: 1.39x as fast as your 4 (1.36 to 1.42x)."
    assert figures(result)[0].interval == "1.36 to 1.42x"
    assert describe_timing(result) == "12 rounds in 24 s."


def test_a_size_that_is_kept_because_the_other_is_no_faster_names_that_one_alone() -> None:
    timed = make_timed_result(1.0, 1.0, 1.0)
    kept = replace(timed, recommended=timed.current, fastest=None)
    result = tuned(timed_in_turns(kept, (0.99, 1.0, 1.01, 1.01, 1.02, 1.02)))
    assert headline(result).sentence == "Keep batch size 4: 8 is not clearly faster."
    explained = nothing_to_gain(result)
    assert explained is not None
    assert (explained.text, explained.others) == (
        "8 is not clearly faster. Your 4 reaches 8.00 samples/s (7.90 to 8.20).",
        (),
    )


def test_a_comparison_that_shows_nothing_says_why_where_it_was_requested() -> None:
    assert "other programs used 1.6 of 2 cores" in headline(tuned(make_unmeasurable_result())).sentence
    result = make_unmeasurable_result()
    assert result.speed is not None
    not_compared = replace(
        result, speed=replace(result.speed, why=NotCompared.STARTS_APART, compared=None, seconds=0.0, rounds=0)
    )
    said = headline(tuned(not_compared, TuneSpec(COMMAND, current_batch_size=4, compare_speed=False)))
    assert said.sentence == "Up to 8 fit. None is recommended: the speeds were not compared."
    assert said.notes == ("The largest that keeps the reserve (5 % free) is 8.",)


def test_a_loader_that_is_the_limit_is_named() -> None:
    waits = (Throughput(8, 10.0, waiting_fraction=0.7),)
    assert "70 % of each step with batch 8" in (loader_limit(tuned(make_timed_result(), throughputs=waits)) or "")
    assert loader_limit(tuned(make_timed_result())) is None


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("lab.train:make_step", "from lab.train import make_step\n\nstep = make_step(8)"),
        ("build.<locals>.make_step", "step = make_step(8)"),
        ("<lambda>", "step = make_step(8)"),
    ],
)
def test_a_function_is_pasted_as_a_call(function: str, call: str) -> None:
    spec = TuneSpec(function_command("lab.train:make_step"), batch="function", current_batch_size=4)
    result = tuned(make_timed_result(), spec)
    assert paste(replace(result, spec=StoredSpec({**result.spec, "function": function}))) == call


def test_a_number_in_a_config_file_is_pasted_as_what_to_set_there() -> None:
    spec = TuneSpec(("python", "train.py", "c.yaml"), batch="config", batch_in="c.yaml:train.batch_size").to_dict()
    assert own_setting(spec, 8) == "# train.batch_size: 8 in c.yaml\npython train.py c.yaml"


def test_a_script_that_divides_by_its_ranks_is_given_the_size_of_all_of_them() -> None:
    spec = TuneSpec(("torchrun", "train.py", "--total={batch_size*2}"), current_batch_size=4).to_dict()
    assert own_setting(spec, 8) == "torchrun train.py --total=16"
