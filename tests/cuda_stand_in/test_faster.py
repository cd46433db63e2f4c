"""Changes of a training on a card are in force there: what was not applied would be an error of the start."""

import json
import sys

import pytest

from engine.text.units import GIB
from tests.cuda_stand_in.cards import ROOT, Cards

SCRIPT = str(ROOT / "tests/engine/tune/scripts/on_card.py")


@pytest.mark.parametrize("dropout", ["0.0", "0.1"])
def test_changes_that_only_a_card_has_are_set_from_outside_and_keep_less_in_memory(cards: Cards, dropout: str) -> None:
    cards.set(memory=4 * GIB)
    trial = [sys.executable, "-m", "tests.cuda_stand_in.faster_trial", "tf32,fused,bf16,expandable"]
    script = (SCRIPT, "--batch-size", "{batch_size}", "--dropout", dropout)
    done = cards.run(*trial, sys.executable, *script, seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    shown = json.loads(done.stdout)
    assert shown["kind"] == "cuda"
    assert shown["memory"]["changed"] < shown["memory"]["today"]  # activations in 16 bits, and a step without copies
    applying = {name for name, reason in shown["reasons"].items() if reason is None}
    assert applying >= {"fused", "expandable", "tf32", "bf16", "compile"}
    assert shown["reasons"]["foreach"] == "torch does so on a GPU by itself"
    assert shown["draws"] is (dropout == "0.1")
