"""A gain is shown only where both trainings were measured, and with its interval."""

import pytest

from analysis.presentation.what_to_change import changes_plot, changes_shown, describe_gain, variant_text
from analysis.runs.earlier.what_to_change import Measured
from engine.estimate.what_to_change import Evaluated, Scope, Variant, WhatToChange, what_to_change
from engine.settings.spec import RunSpec
from tests.engine.synthetic_estimates import evaluated


def measured(run_id: int, largest: int, *speed: float) -> Measured:
    return Measured(run_id, "a card", largest, (speed[0], speed[1], speed[2]) if speed else None)


BASE = measured(1, 10, 99.0, 100.0, 101.0)


def found(batch_size: int = 64) -> WhatToChange:
    def evaluate(spec: RunSpec) -> Evaluated:
        sample = 10 if spec.precision == "bf16" else 30
        return evaluated(1000, 0.1, 1000 // sample, 900 // sample, lambda size: size * sample)

    return what_to_change(RunSpec("bert-tiny"), batch_size, evaluate, Scope.SINGLE)


def test_a_gain_is_the_ratio_of_batches_and_of_speeds_with_its_interval() -> None:
    assert describe_gain(measured(2, 19, 235.0, 240.0, 245.0), BASE) == "1.9x the batch, 2.40x the speed [2.33, 2.47]"


def test_an_interval_around_one_is_the_same_speed() -> None:
    assert describe_gain(measured(2, 20, 98.0, 100.5, 103.0), BASE) == "2.0x the batch, the same speed [0.97, 1.04]"


def test_no_speed_is_claimed_where_it_was_not_measurable() -> None:
    assert describe_gain(measured(2, 20), BASE) == "2.0x the batch; the speed was not measurable"


def test_nothing_is_claimed_without_both_measurements() -> None:
    assert describe_gain(measured(2, 20), None) == describe_gain(None, BASE) == describe_gain(BASE, BASE) == ""


def test_the_page_has_the_advice_in_its_order_and_every_row() -> None:
    made = found()
    shown = changes_shown(made, {})
    assert shown["title"] == "What to change so that batch 64 fits"
    assert [row.variant.label for row in shown["advice"]][0] == "4 micro-batches of 16"
    assert len(shown["rows"]) == len(made.variants)
    assert all(row.gain == "" for row in shown["rows"])


def test_the_picture_joins_what_nothing_else_beats() -> None:
    plot = changes_plot(found())
    assert plot is not None
    assert plot.front == ((90.0, 640.0),)  # bf16: the least memory, and the largest safe batch
    assert plot.kinds == "estimated"


@pytest.mark.parametrize(
    ("changed", "pieces", "text"),
    [
        ({}, None, "As requested"),
        ({"optimizer": "adamw-8bit"}, None, "Optimizer: AdamW, 8-bit state"),
        ({"precision": "bf16"}, None, "Precision: bf16 autocast, fp32 weights"),
        ({"gradient_checkpointing": True}, 16, "Gradient checkpointing + 4 micro-batches of 16"),
        ({"lora_rank": 16, "load_in_4bit": True}, None, "LoRA rank: 16 + 4-bit base weights"),
        ({"sequence_length": 1024}, None, "Sequence length: 1,024"),
        ({"gone": 3}, None, "gone 3"),
    ],
)
def test_a_variant_is_called_what_the_form_calls_its_settings(changed, pieces, text) -> None:
    label = "x + 4 micro-batches of 16" if pieces else "x"
    variant = Variant(label, changed, (), 64, 1, True, True, 1, 1, pieces)
    assert variant_text(variant) == text


def test_what_fits_and_is_no_advice_is_named_with_the_reason() -> None:
    def evaluate(spec: RunSpec) -> Evaluated:
        return evaluated(1000, 0.1, 33, 30, lambda size: size * (30 if spec == RunSpec("bert-tiny") else 10))

    shown = changes_shown(what_to_change(RunSpec("bert-tiny"), 64, evaluate, Scope.SINGLE), {})
    assert len(shown["advice"]) == 5
    assert "LoRA rank: 16" in shown["beyond"]
    assert not {row.text for row in shown["advice"]} & set(shown["beyond"])
