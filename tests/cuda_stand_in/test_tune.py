"""A training command on a card: its limit is in force inside it, and what it catches is a refusal all the same."""

from __future__ import annotations

import json
import sys

from engine.units import GIB
from tests.cuda_stand_in.cards import ROOT, Cards

SCRIPT = str(ROOT / "tests/engine/tune/scripts/on_card.py")
LIMIT_BYTES = GIB


def test_a_command_gets_its_exact_size_under_a_limit_even_if_it_catches_out_of_memory(cards: Cards) -> None:
    cards.set(memory=4 * GIB)
    command = ["--", sys.executable, SCRIPT, "--catch", "--batch-size", "{batch_size}"]
    limits = ["--memory-limit", "1GiB", "--current-batch-size", "8"]
    tune = [sys.executable, "-m", "engine", "tune", "--device", "cuda:0", *limits, "--json"]
    done = cards.run(*tune, *command, seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout)
    boundary, device = result["boundary"], result["device"]
    assert boundary["certified"]
    assert boundary["refused_batch_size"] == boundary["largest_batch_size"] + 1
    assert (device["kind"], device["limit_bytes"]) == ("cuda", LIMIT_BYTES)
    assert result["largest"]["peak_reserved_bytes"] <= LIMIT_BYTES
    refused = [p for p in result["probes"] if p["batch_size"] == boundary["refused_batch_size"]]
    assert [p["outcome"] for p in refused] == ["out_of_memory"]


def test_a_whole_run_on_a_card_is_limited_by_its_longest_row(cards: Cards) -> None:
    cards.set(memory=4 * GIB)
    script = str(ROOT / "tests/engine/tune/scripts/whole_on_card.py")
    tune = [sys.executable, "-m", "engine", "tune", "--device", "cuda:0", "--memory-limit", "1GiB", "--json"]
    done = cards.run(*tune, "--whole-run", "--", sys.executable, script, "{batch_size}", "{out}", seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout)
    largest, note = result["boundary"]["largest_batch_size"], result["boundary"]["note"]
    assert result["boundary"]["certified"]
    assert f"of a batch of {largest} with rows of 512" in note
    assert result["training"]["whole_run"]["checkpoints"] == 1
    assert result["training"]["whole_run"]["evaluation_batches"] > 0
