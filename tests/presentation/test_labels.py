"""The facts of a run: its precision with what the weights are in."""

import pytest

from analysis.presentation.labels import describe_precision, describe_settings
from tests.factories import make_spec


@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("fp32", "fp32"),
        ("bf16", "bf16 autocast, fp32 weights"),
        ("fp16", "fp16 autocast, fp32 weights"),
        ("bf16-pure", "pure bf16"),
    ],
)
def test_the_precision_says_what_the_weights_are_in(precision: str, said: str) -> None:
    assert describe_precision({"precision": precision}) == said


def test_four_bit_weights_are_not_called_fp32() -> None:
    assert describe_precision({"precision": "bf16", "load_in_4bit": True}) == "bf16 autocast"


def test_lists_have_room_for_a_word() -> None:
    assert describe_settings(make_spec(precision="bf16").to_dict())[0] == "bf16"
