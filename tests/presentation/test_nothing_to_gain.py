"""A result that keeps today's size, one without a certificate, and the line of how speeds were compared."""

from dataclasses import replace
from typing import Any

import pytest

from engine.describe.boundary import certificate_lines
from engine.describe.key_figures import NothingToGain, nothing_to_gain
from engine.describe.result import describe_timing
from engine.describe.speed import others_of
from engine.facts.result import Boundary, DeviceFacts, Purpose, Reason, RunResult
from engine.facts.speed_rounds import SpeedRound, Stage
from engine.questions.documents.measured import Measured
from engine.text.units import GIB
from tests.factories import make_probe, make_refusal, make_result, make_result_that_does_not_fit, make_spec
from tests.factories.speeds import (
    make_kept_result,
    make_result_out_of_time,
    make_timed_result,
    make_unmeasurable_result,
)

CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-40GB", 40 * GIB, limit_bytes=GIB)


def kept(**fields: Any) -> Measured:
    result = make_timed_result(0.98, 1.0, 1.02)
    return Measured.from_dict(replace(result, recommended=result.current, **fields).to_dict())


def of(result: Measured) -> NothingToGain:
    found = nothing_to_gain(result)
    assert found is not None
    return found


def test_another_recommended_size_is_something_to_gain() -> None:
    others = (make_result(), make_result_that_does_not_fit(), make_unmeasurable_result())
    assert [nothing_to_gain(Measured.from_dict(result.to_dict())) for result in others] == [None] * 3


def test_without_a_figure_the_evidence_is_the_interval_that_holds_no_gain() -> None:
    assert of(Measured.from_dict(make_kept_result().to_dict())).text == ("8 is 0.80 to 1.02x as fast as your 4.")


def test_the_evidence_has_the_speed_of_the_kept_size() -> None:
    text = of(kept()).text
    assert text == "No measured size is clearly faster. Your 4 reaches 8.00 samples/s (7.90 to 8.20)."


def test_beside_a_figure_above_that_of_the_fastest_no_size_is_called_the_fastest() -> None:
    """143 samples/s were "the fastest size measured" where the chart had 144 at another size."""
    result = make_timed_result()
    higher = make_probe(7, purpose=Purpose.TIMING, samples_per_second=8.1)
    beside = kept(fastest=result.current, probes=(*result.probes, higher))
    assert (beside.roles["fastest"], kept(fastest=result.current).roles["fastest"]) == (None, 4)


def test_free_memory_is_room_for_something_larger() -> None:
    assert of(kept()).others == ("Longer sequences or a larger model: 624.0 MiB are free at 4.",)
    images = kept(spec=make_spec(model="resnet18", current_batch_size=4))
    assert of(images).others[0].startswith("Larger images")


def test_without_room_nothing_larger_is_suggested() -> None:
    result = make_timed_result()
    assert result.current is not None
    full = replace(result.current, memory_bytes=GIB)
    assert of(Measured.from_dict(replace(result, recommended=full).to_dict())).others == ()


def test_half_precision_is_suggested_on_an_accelerator_that_trains_in_fp32() -> None:
    assert any("bf16" in text for text in of(kept(device=CARD)).others)
    in_half = kept(device=CARD, spec=make_spec(precision="bf16", current_batch_size=4))
    assert not any("bf16" in text for text in of(in_half).others)


def test_checkpointing_that_saves_memory_nobody_needs_is_named() -> None:
    result = kept(spec=make_spec(gradient_checkpointing=True, current_batch_size=4))
    assert of(result).others[0].startswith("Without gradient checkpointing")


OPEN = replace(make_result(), device=CARD, boundary=Boundary(8, False, None, Reason.TIME_BUDGET))


def texts(result: RunResult) -> list[str]:
    return [line.text for line in certificate_lines(result)]


@pytest.mark.parametrize(
    ("refused", "untried"), [(9, "."), (10, "; 9 was not tried."), (12, "; 9 to 11 were not tried.")]
)
def test_the_size_that_ran_out_is_named_and_what_was_not_tried(refused: int, untried: str) -> None:
    probes = (make_probe(8), make_refusal(refused, fresh_process=True, failed_phase="backward"))
    assert texts(replace(OPEN, probes=probes))[1] == f"Batch {refused}: out of memory in backward{untried}"


def test_where_none_ran_out_it_is_open_and_the_note_stands_below() -> None:
    noted = replace(OPEN, probes=(make_probe(8),), boundary=replace(OPEN.boundary, note="moved down"))
    assert [line.outcome for line in certificate_lines(noted)] == ["fits", "open", "open"]
    assert texts(noted)[1:] == ["No larger size is known to run out of memory.", "moved down"]


def stored(result: RunResult) -> Measured:
    return Measured.from_dict(result.to_dict())


def test_the_timing_says_what_else_the_machine_did() -> None:
    said = describe_timing(stored(make_timed_result()))
    assert said == "12 rounds in 24 s."
    disturbed = describe_timing(stored(make_unmeasurable_result()))
    assert disturbed == "12 rounds in 24 s, 3 of them quiet."


def test_rounds_that_do_not_count_are_no_reason_to_say_that_others_disturbed_it() -> None:
    """The mean over all rounds was 0.2 of 2 cores, and the page said "all without other programs" beside it."""
    result = make_timed_result()
    rounds = tuple(SpeedRound(Stage.EVALUATION, 1.0, ()) for _ in range(14))
    assert describe_timing(stored(replace(result, speed_rounds=rounds))) == (
        "12 of 14 rounds in 24 s count; other programs ran beside the rest."
    )
    assert others_of(result) == ""


def test_a_comparison_that_took_no_time_has_no_line() -> None:
    result = make_result_out_of_time()
    assert describe_timing(stored(result)) == ""
