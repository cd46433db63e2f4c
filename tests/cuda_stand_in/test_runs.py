"""Whole runs by the command line, as a person starts them: the three classic models' transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.result import RunResult
from engine.units import GIB, MIB
from tests.cuda_stand_in.cards import CONTEXT_BYTES, Cards, WarmEngine, uuid

CARD = {"memory": 8 * GIB}
LIMIT_BYTES = {"bert-tiny": 512 * MIB, "bert": 2560 * MIB, "gpt2": 3 * GIB}
SHORT = {"sequence_length": 64, "start_batch_size": 8, "current_batch_size": 8, "soak_steps": 3}


OPTIONS = {
    "sequence_length": "--sequence-length",
    "start_batch_size": "--start",
    "current_batch_size": "--current-batch-size",
    "soak_steps": "--soak-steps",
}


def whole_run(cards: Cards, model: str, *options: str) -> dict:
    cards.set(**CARD)
    short = [word for name, value in SHORT.items() for word in (OPTIONS[name], f"{value}")]
    limit = ["--memory-limit", f"{LIMIT_BYTES[model]}"]
    done = cards.engine(model, "cuda", "--json", *limit, *short, *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def tiny(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, Cards]:
    cards = Cards(tmp_path_factory.mktemp("tiny") / "cards", built)
    return whole_run(cards, "bert-tiny"), cards


def test_a_run_is_certified_below_its_limit(tiny: tuple[dict, Cards]) -> None:
    result, _ = tiny
    assert result["boundary"]["certified"]
    assert result["boundary"]["refused_batch_size"] == result["boundary"]["largest_batch_size"] + 1
    peaks = [p["peak_reserved_bytes"] or 0 for p in result["probes"] if p["outcome"] == "fits"]
    assert max(peaks) <= LIMIT_BYTES["bert-tiny"]


def test_a_run_begins_with_an_estimate_by_the_tested_method(tiny: tuple[dict, Cards]) -> None:
    estimate = tiny[0]["estimate"]
    assert estimate["method"] == "fake_cuda"


def test_a_run_makes_one_context_for_each_session_and_none_besides(tiny: tuple[dict, Cards]) -> None:
    result, cards = tiny
    assert [card for _, card in cards.contexts()] == [uuid()] * result["timings"]["processes"]


def test_a_timed_size_says_what_the_card_was_doing(tiny: tuple[dict, Cards]) -> None:
    timed = [p for p in tiny[0]["probes"] if p["step_seconds"] is not None]
    assert timed
    assert {p["timing_conditions"]["sm_clock_mhz"] for p in timed} == {1410}


def test_the_driver_counts_what_the_run_says_it_used(tiny: tuple[dict, Cards]) -> None:
    fitting = [p for p in tiny[0]["probes"] if p["device_used_bytes"] is not None]
    assert {p["beside_bytes"] for p in fitting} == {CONTEXT_BYTES}


def test_the_same_run_finds_the_same_boundary_again(tiny: tuple[dict, Cards], cards: Cards) -> None:
    again = whole_run(cards, "bert-tiny")
    assert again["boundary"] == tiny[0]["boundary"]


@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_a_classic_model_runs_whole_and_finds_the_same_boundary_twice(
    warm: WarmEngine, cards: Cards, model: str
) -> None:
    result = whole_run(cards, model, "--no-estimate")
    again: RunResult = warm.measure(CARD, is_timed=True, model=model, memory_limit_bytes=LIMIT_BYTES[model], **SHORT)
    assert result["boundary"]["certified"]
    assert result["boundary"]["largest_batch_size"] == again.boundary.largest_batch_size
    assert again.boundary.certified


def test_an_estimate_makes_no_context_and_does_not_start_the_driver(cards: Cards, tmp_path: Path) -> None:
    cards.set(cards=2)
    done = cards.engine("estimate", "bert-tiny", "--gpu", "a100-40gb", "--sequence-length", "32", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["method"] == "fake_cuda"
    assert cards.contexts() == []
