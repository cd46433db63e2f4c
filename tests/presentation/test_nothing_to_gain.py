"""A result that keeps today's size: why, and what else may help."""

from dataclasses import replace
from typing import Any

from analysis.presentation.figures import NothingToGain, nothing_to_gain
from engine.documents.measured import Measured
from engine.results.result import DeviceFacts, Purpose
from engine.text.units import GIB
from tests.factories import make_probe, make_result, make_result_that_does_not_fit, make_spec
from tests.factories.speeds import make_kept_result, make_timed_result, make_unmeasurable_result

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
