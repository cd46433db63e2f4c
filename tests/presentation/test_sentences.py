"""The sentence that leads a result page, and the words around it: never more than was measured."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from analysis.presentation.kinds.size import Command
from analysis.presentation.result_summary import (
    headline,
    reach,
    verdict,
)
from engine.describe.boundary import CPU_COUNTS_TENSORS, certificate_lines, why_not_certified
from engine.describe.key_figures import figures, key_figures
from engine.describe.reserve import describe_reserve
from engine.describe.result import describe_timing
from engine.facts.not_compared import NotCompared
from engine.facts.result import Boundary, DeviceFacts, Point, Purpose, Reason, RunResult
from engine.questions.documents.measured import Measured
from engine.questions.documents.words import paste, paste_note
from engine.text.units import GIB, MIB, format_least_usd
from tests.factories import make_probe, make_refusal, make_result, make_result_that_does_not_fit, make_spec
from tests.factories.speeds import (
    make_bound_result,
    make_kept_result,
    make_result_out_of_time,
    make_timed_result,
    make_unmeasurable_result,
    undisturbed,
)

CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-40GB", 40 * GIB, limit_bytes=GIB)


def stored(result: RunResult | None = None, **fields: Any) -> Measured:
    return Measured.from_dict(replace(result or make_result(), **fields).to_dict())


def point(batch_size: int) -> Point:
    return Point.of(make_probe(batch_size), CARD)


def uncertified(reason: Reason) -> Boundary:
    return Boundary(8, False, None, reason)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "Use batch size 8: 2.00x as fast as your 4."),
        ({"speedup": None}, "Use batch size 8: no measured size is clearly faster; your 4 was not measured."),
        ({"recommended": point(4), "speedup": 1.0}, "Keep batch size 4: no measured size is clearly faster."),
        ({"largest": point(1), "recommended": None}, "Up to 8 fit. None is recommended."),
    ],
)
def test_the_sentence_says_what_was_found(fields: dict[str, Any], sentence: str) -> None:
    assert headline(stored(**fields)).sentence == sentence


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "On this CPU, limited to 1 GiB, BERT tiny trains with up to 8 samples."),
        ({"boundary": uncertified(Reason.TIME_BUDGET)}, "BERT tiny trains with at least 8 samples."),
        ({"device": CARD}, "On this A100-SXM4-40GB, limited to 1 GiB, BERT tiny trains"),
        ({"spec": make_spec(optimizer="none", current_batch_size=4)}, "BERT tiny runs forward and backward with up"),
        ({"boundary": Boundary(1, True, 2, Reason.OUT_OF_MEMORY)}, "trains with up to 1 sample."),
    ],
)
def test_the_line_below_says_where_and_how_far_it_trains(fields: dict[str, Any], sentence: str) -> None:
    assert sentence in reach(stored(**fields))


def test_a_figure_is_said_with_its_interval() -> None:
    said = headline(stored(make_timed_result())).sentence
    assert said == "Use batch size 8: 1.39x as fast as your 4 (1.36 to 1.42x)."


def test_a_known_lower_bound_is_said_and_its_interval_follows() -> None:
    said = headline(stored(make_bound_result()))
    assert said.sentence == "Use batch size 8: at least 2x as fast as your 4."
    assert said.notes == ("Measured 2.0 to 3.8x as fast.",)
    assert said.batch_size == 8


def test_a_lower_bound_is_never_rounded_up() -> None:
    result = stored(make_bound_result(1.96, 3.81))
    said = headline(result)
    assert said.sentence.endswith("at least 1.9x as fast as your 4.")
    assert said.notes[0].startswith("Measured 1.9 to 3.9x as fast")
    assert key_figures(result)[2].value == "at least $0.58 a run"  # $0.5878


def test_without_a_gain_todays_size_is_kept_and_the_bound_of_the_other_is_named() -> None:
    said = headline(stored(make_kept_result()))
    assert (said.sentence, said.notes) == ("Keep batch size 4: 8 is 0.80 to 1.02x as fast as your 4.", ())


def test_a_kept_size_that_leaves_less_than_the_reserve_says_so() -> None:
    full = replace(point(4), memory_bytes=GIB - 10 * MIB)
    said = headline(stored(make_kept_result(), recommended=full))
    assert said.notes == ("4 leaves 1.0 % of the memory free; 8 is the largest that leaves 5 %.",)


def test_speeds_that_do_not_say_which_is_better_recommend_nothing_and_name_no_money() -> None:
    result = stored(make_unmeasurable_result())
    said = headline(result)
    assert said.sentence == "Up to 8 fit. None is recommended: other programs used 1.6 of 2 cores."
    assert said.batch_size is None
    assert said.notes == (
        "Load slows small batches more: time again when the machine is quiet.",
        "The largest that keeps the reserve (5 % free) is 8.",
    )
    assert "$" not in said.sentence + "".join(str(figure) for figure in figures(result))
    assert paste(result) is None


def test_a_factor_is_named_only_where_no_other_program_distorted_it() -> None:
    said = headline(stored(undisturbed(make_unmeasurable_result())))
    assert said.sentence == "Up to 8 fit. None is recommended: 8 is 0.80 to 13.00x as fast as your 4."
    assert said.notes[0] == "The rounds of this run do not decide: time again."


def test_a_run_out_of_time_recommends_nothing() -> None:
    said = headline(stored(make_result_out_of_time()))
    assert said.sentence == "At least 8 fit. None is recommended: the run ended before the speeds were compared."
    assert said.notes == ("A longer time budget lets the search end, and the speeds be compared.",)


def test_a_limit_that_is_known_without_a_comparison_says_what_was_missing() -> None:
    unclear = make_unmeasurable_result()
    assert unclear.speed is not None
    said = headline(stored(unclear, speed=replace(unclear.speed, why=NotCompared.TIME_ENDED, compared=None)))
    assert said.sentence == ("Up to 8 fit. None is recommended: the time budget ended before the speeds were compared.")
    assert said.notes[0] == "A longer time budget lets the speeds be compared."


def test_a_size_of_today_that_does_not_fit_is_answered_by_a_compared_choice_alone() -> None:
    spec = make_spec(current_batch_size=16)
    compared = stored(make_timed_result(), spec=spec, current=None, speedup=None)
    assert (
        headline(compared).sentence
        == "Batch size 16 does not fit. Use batch size 8: no measured size is clearly faster."
    )
    unknown = stored(make_unmeasurable_result(), spec=spec, current=None)
    assert headline(unknown).sentence == "Batch size 16 does not fit; up to 8 fit."
    assert headline(unknown).notes[0] == "None is recommended: other programs used 1.6 of 2 cores."


def test_a_recommended_size_that_leaves_less_than_the_reserve_says_so() -> None:
    full = replace(point(8), memory_bytes=GIB)
    result = stored(make_timed_result(), recommended=full)
    assert headline(result).notes == ("8 leaves 0.0 % of the memory free; no measured size leaves 5 %.",)
    assert describe_reserve(result).endswith("which no measured size leaves.")


def test_the_money_carries_the_interval_of_the_speed_up() -> None:
    speedup, cost, year = figures(stored(make_timed_result()))
    assert [figure.interval for figure in (speedup, cost, year)] == [
        "1.36 to 1.42x",
        "$0.85 to $0.88",
        "$31.76 to $35.49",
    ]
    assert [speedup.tone, year.tone] == ["gain", "gain"]


def test_a_bound_of_the_speed_up_bounds_the_money() -> None:
    speedup, cost, year = figures(stored(make_bound_result()))
    assert (speedup.value, speedup.interval, speedup.kind) == ("at least 2x", "2.0 to 3.8x", "measured")
    assert (cost.value, cost.note, cost.interval) == ("at most $0.60", "was $1.20.", "")
    assert (year.value, year.interval) == ("at least $60.00", "$60.00 to $88.43")
    assert [speedup.tone, year.tone] == ["gain", "gain"]


def test_where_todays_size_does_not_fit_the_speed_of_the_other_stands_alone() -> None:
    (speed,) = figures(stored(make_timed_result(), spec=make_spec(current_batch_size=16), current=None, speedup=None))
    assert (speed.title, speed.value, speed.interval, speed.kind) == ("Speed", "16.0", "15.0 to 17.0", "measured")


def test_the_reserve_stands_beside_what_was_asked_for() -> None:
    assert describe_reserve(stored(make_timed_result())) == (
        "8 leaves 224.0 MiB free, 21.9 %; requested: at least 5 %."
    )


def test_larger_sizes_that_were_timed_and_are_not_faster_are_named() -> None:
    """Nobody said why 512 and not 5,084: larger sizes had been timed. One without the reserve is no choice."""
    sizes = [make_probe(size, purpose=Purpose.TIMING) for size in (4, 8, 900, 4816, 5084)]
    result = stored(make_timed_result(), probes=tuple(sizes), largest_with_reserve=point(4816))
    assert headline(result).notes == (
        "No larger size that was timed (900 and 4,816) is shown to be more than 3 % faster.",
    )
    assert headline(stored(make_timed_result(), probes=tuple(sizes[:2]), largest_with_reserve=point(8))).notes == ()


def test_the_formula_of_the_saving_gives_the_saving() -> None:
    """The page said 7.8x and $104.78, and the formula gave $104.62: 7.8 is rounded down from 7.8842."""
    *_, year = figures(stored(make_bound_result(7.8842, 11.0)))
    money = make_bound_result(7.8842, 11.0).savings
    by_formula = money.hours_per_run * money.price_per_hour_usd * (1 - 1 / 7.8842) * money.runs_per_year
    assert "(1 − 1 / 7.8842)" in year.note
    assert year.value == f"at least {format_least_usd(by_formula)}"


def test_a_result_of_before_the_intervals_has_none_and_keeps_its_words() -> None:
    data = make_result().to_dict()
    for name in ("speed", "speedup_low", "speedup_high", "kinds"):
        del data[name]
    result = Measured.from_dict(data)
    assert result.is_speed_measurable
    assert describe_timing(result) == describe_reserve(result) == ""
    assert [figure.interval for figure in figures(result)] == ["", "", ""]
    assert headline(result).sentence == "Use batch size 8: 2.00x as fast as your 4."


def test_nothing_fits_is_said_plainly() -> None:
    said = verdict(stored(make_result_that_does_not_fit()))
    assert said == "On this CPU, limited to 1 GiB, BERT tiny does not fit: even batch 1 runs out of memory."


@pytest.mark.parametrize("make", [make_bound_result, make_unmeasurable_result])
def test_a_message_tells_every_note_of_the_answer(make: Callable[[], RunResult]) -> None:
    result = stored(make())
    assert headline(result).notes
    assert headline(result).text in verdict(result)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.TIME_BUDGET, "time budget of 30 min was spent"),
        (Reason.MAX_BATCH_SIZE, "65,536 was the largest size allowed"),
        (Reason.SIZE_LIMIT, "a limit of the library"),
    ],
)
def test_an_open_boundary_says_why(reason: Reason, expected: str) -> None:
    result = stored(boundary=uncertified(reason))
    assert expected in (why_not_certified(result) or "")


def test_a_certified_boundary_needs_no_excuse() -> None:
    result = stored()
    assert why_not_certified(result) is None


def test_the_certificate_takes_the_refusal_of_the_fresh_process() -> None:
    refused = make_refusal(9, fresh_process=True, failed_phase="backward")
    lines = certificate_lines(stored(device=CARD, probes=(make_probe(8), make_refusal(9), refused)))
    assert [line.text for line in lines] == [
        "Batch 8 trained 5 steps in a fresh process.",
        "Batch 9: out of memory in backward, in a fresh process.",
    ]


def test_the_certificate_of_a_cpu_says_what_its_limit_does_not_count() -> None:
    assert certificate_lines(stored())[-1].text == CPU_COUNTS_TENSORS


def test_a_smaller_size_is_pasted_with_accumulation() -> None:
    result = stored(spec=make_spec(current_batch_size=20))
    assert "per_device_train_batch_size=8,\n    gradient_accumulation_steps=3," in (paste(result) or "")
    assert paste_note(result) == "3 x 8 = 24 samples make one optimizer step; today it is 20."


def test_the_global_batch_of_today_counts_all_micro_batches() -> None:
    result = stored(spec=make_spec(current_batch_size=4, accumulation_steps=4))
    assert "per_device_train_batch_size=8,\n    gradient_accumulation_steps=2," in (paste(result) or "")
    assert paste_note(result) == "2 x 8 = 16 samples make one optimizer step, as today."


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"precision": "bf16"}, "bf16=True"),
        ({"gradient_checkpointing": True}, "gradient_checkpointing=True"),
        ({"model": "resnet18"}, "DataLoader(dataset, batch_size=8"),
    ],
)
def test_the_setting_to_paste_keeps_the_other_settings(fields: dict[str, Any], line: str) -> None:
    assert line in (paste(stored(spec=make_spec(current_batch_size=4, **fields))) or "")


def test_a_result_of_a_later_version_can_be_read() -> None:
    data = make_result().to_dict()
    data["timings"]["unheard_of_seconds"] = 1.0
    assert Measured.from_dict(data).timings.processes == 0


def test_a_long_command_is_cut_in_lists() -> None:
    command = ["/opt/train/venv/bin/python", "train.py", *["--option=value"] * 9, "{batch_size}"]
    (text,) = Command().settings({"command": command})
    assert (len(text), text[-1]) == (80, "…")
    assert Command().settings({"command": ["a", "b c"], "whole_run": True}) == ["a 'b c'", "whole run"]


def test_a_command_whose_batch_size_stands_in_a_config_file_names_the_file_and_the_key() -> None:
    spec = {"command": ["a", "config.yaml"], "batch_in": "config.yaml:train.batch_size"}
    assert Command().settings(spec) == ["a config.yaml", "Batch size in config.yaml: train.batch_size"]
