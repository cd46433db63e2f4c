"""Whole runs, by the engine and by the command line as a person starts it; with two cards each keeps to its own."""

import json

import pytest

from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import CONTEXT_BYTES, Cards, WarmEngine, uuid

CARD = {"memory": 8 * GIB}
LIMIT_BYTES = {"bert-tiny": 512 * MIB, "bert": 2560 * MIB, "gpt2": 3 * GIB}
START = {"bert-tiny": 64, "bert": 16, "gpt2": 12}


def short(model: str) -> dict[str, int]:
    return {"sequence_length": 64, "start_batch_size": START[model], "current_batch_size": START[model]}


def whole_run(cards: Cards, model: str) -> dict:
    cards.set(**CARD)
    options = ["--sequence-length", "64", "--start", f"{START[model]}", "--current-batch-size", f"{START[model]}"]
    done = cards.engine(model, "cuda", "--json", "--memory-limit", f"{LIMIT_BYTES[model]}", *options)
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
    assert max(p["peak_reserved_bytes"] or 0 for p in fitting(result)) <= LIMIT_BYTES["bert-tiny"]


def fitting(result: dict) -> list[dict]:
    return [p for p in result["probes"] if p["outcome"] == "fits"]


def test_a_run_begins_with_an_estimate_by_the_tested_method(tiny: tuple[dict, Cards]) -> None:
    assert tiny[0]["estimate"]["method"] == "fake_cuda"


def test_a_run_makes_one_context_for_each_session_and_none_besides(tiny: tuple[dict, Cards]) -> None:
    result, cards = tiny
    assert [card for _, card in cards.contexts()] == [uuid()] * result["timings"]["processes"]


def test_a_timed_size_says_what_the_card_was_doing(tiny: tuple[dict, Cards]) -> None:
    conditions = [p["timing_conditions"] for p in tiny[0]["probes"] if p["timed_step_seconds"]]
    assert conditions
    assert {said["sm_clock_mhz"] for said in conditions} == {1410}


def test_the_driver_counts_what_the_run_says_it_used(tiny: tuple[dict, Cards]) -> None:
    told = [p for p in fitting(tiny[0]) if p["device_used_bytes"] is not None]
    assert told
    assert {p["beside_bytes"] for p in told} == {CONTEXT_BYTES}


@pytest.mark.nightly
def test_the_same_run_finds_the_same_boundary_again(tiny: tuple[dict, Cards], warm: WarmEngine) -> None:
    limit = {"memory_limit_bytes": LIMIT_BYTES["bert-tiny"]}
    again = warm.measure(CARD, estimates=True, soak_steps=None, **limit, **short("bert-tiny"))
    assert again.estimate is not None
    assert again.boundary.largest_batch_size == tiny[0]["boundary"]["largest_batch_size"]
    assert again.boundary.certified


@pytest.mark.nightly
@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_a_classic_model_runs_and_finds_the_same_boundary_twice(warm: WarmEngine, model: str) -> None:
    limit = {"memory_limit_bytes": LIMIT_BYTES[model]}
    first, second = (warm.measure(CARD, model=model, **limit, **short(model)) for _ in range(2))
    assert first.boundary.certified
    assert first.boundary.largest_batch_size
    assert first.boundary.largest_batch_size == second.boundary.largest_batch_size


@pytest.mark.nightly  # built anew in each session: a minute each
@pytest.mark.parametrize("model", ["bert", "gpt2"])
def test_a_large_model_runs_whole_by_the_command_line(cards: Cards, model: str) -> None:
    result = whole_run(cards, model)
    assert result["boundary"]["certified"]
    assert max(p["peak_reserved_bytes"] or 0 for p in fitting(result)) <= LIMIT_BYTES[model]


CARDS = {"cards": 2, "memory": f"{4 * GIB},{2 * GIB}"}
SHORT = {"sequence_length": 128, "start_batch_size": 64}


def test_a_run_on_the_second_card_opens_no_context_on_the_first(warm: WarmEngine) -> None:
    result = warm.measure(CARDS, device="cuda:1", **SHORT)
    assert result.boundary.certified
    assert result.device.capacity_bytes == 2 * GIB
    assert {card for _, card in warm.cards.contexts()} == {uuid(1)}


def test_memory_on_one_card_is_not_missing_on_the_other(warm: WarmEngine) -> None:
    first = warm.probe({**CARDS, "held": f"{3 * GIB},0"}, 300, device="cuda:1", sequence_length=128)
    second = warm.probe({**CARDS, "held": f"0,{3 * GIB // 2}"}, 300, device="cuda:1", sequence_length=128)
    assert first.fits
    assert not second.fits


# in a fork for each pin: the driver reads the variable when it starts
PINNED = """
import json, os, sys
import torch
for pin in sys.argv[1:]:
    if os.fork() == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = pin
        torch.zeros(1, device="cuda:0")
        print(json.dumps([torch.cuda.device_count(), torch.cuda.mem_get_info()[1]]), flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_pinned_process_sees_its_card_alone_and_calls_it_the_first(cards: Cards) -> None:
    cards.set(**CARDS)
    done = cards.python(PINNED, uuid(1), "1", uuid(1)[:12])
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[1, 2 * GIB]] * 3
    assert [card for _, card in cards.contexts()] == [uuid(1)] * 3


def test_a_run_on_the_cpu_opens_no_context_on_any_card(cards: Cards) -> None:
    cards.set(**CARDS)
    arguments = ("bert-tiny", "cpu", "--memory-limit", "110MiB", "--max", "1", "--no-estimate")
    assert cards.engine(*arguments).returncode == 0
    assert cards.contexts() == []
