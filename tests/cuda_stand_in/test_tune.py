"""A training command or a function on a card: limit and changes are in force inside it, and refusals are told."""

import json
import sys
from pathlib import Path

import pytest

from engine.machine.device_lock import held, lock_path
from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import ROOT, Cards, uuid

SCRIPT = str(ROOT / "tests/engine/trainings/script/scripts/on_card.py")
LIMIT_BYTES = GIB


def test_a_command_gets_its_exact_size_under_a_limit_even_if_it_catches_out_of_memory(cards: Cards) -> None:
    cards.set(memory=4 * GIB)
    command = ["--", sys.executable, SCRIPT, "--catch", "--batch-size", "{batch_size}"]
    limits = ["--memory-limit", "1GiB", "--current-batch-size", "8", "--no-compare-speed"]
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


def test_a_training_on_another_card_than_the_current_one_is_measured_and_limited_there(cards: Cards) -> None:
    cards.set(cards=2, memory=f"{4 * GIB},{2 * GIB}")
    command = ["--", sys.executable, SCRIPT, "--device", "cuda:1", "--batch-size", "{batch_size}"]
    limits = ["--memory-limit", "1GiB", "--current-batch-size", "8", "--no-compare-speed"]
    done = cards.run(sys.executable, "-m", "engine", "tune", *limits, "--json", *command, seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout)
    device, largest = result["device"], result["largest"]
    assert (device["uuid"], device["capacity_bytes"]) == (uuid(1), 2 * GIB)
    assert result["boundary"]["certified"]
    assert 0.8 * LIMIT_BYTES < largest["peak_reserved_bytes"] <= LIMIT_BYTES


def test_a_model_on_two_cards_of_one_process_is_limited_on_both_and_the_fuller_one_decides(cards: Cards) -> None:
    cards.set(cards=2, memory=4 * GIB)
    command = ["--", sys.executable, SCRIPT, "--rest-on", "cuda:1", "--batch-size", "{batch_size}"]
    limits = ["--memory-limit", "256MiB", "--current-batch-size", "2", "--no-compare-speed"]
    done = cards.run(sys.executable, "-m", "engine", "tune", *limits, "--json", *command, seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout)
    assert (result["device"]["device"], result["device"]["uuid"]) == ("cuda:1", uuid(1))
    assert result["boundary"]["certified"]
    assert 200 * MIB < result["largest"]["peak_reserved_bytes"] <= 256 * MIB


def test_somebody_else_on_the_card_prevents_the_certificate_of_a_command(cards: Cards) -> None:
    cards.set(memory=7 * GIB // 2)
    assert cards.tenant().take(9 * GIB // 4) == 0
    command = ["--", sys.executable, SCRIPT, "--batch-size", "{batch_size}"]
    tune = [sys.executable, "-m", "engine", "tune", "--device", "cuda:0", "--no-compare-speed", "--json"]
    done = cards.run(*tune, "--current-batch-size", "2", *command, seconds=900)
    result = json.loads(done.stdout)
    assert (result["boundary"]["certified"], result["boundary"]["reason"]) == (False, "foreign_memory")
    assert "others held" in result["boundary"]["note"]
    assert result["device"]["is_shared"]


def test_a_whole_run_on_a_card_is_limited_by_its_longest_row(cards: Cards) -> None:
    cards.set(memory=4 * GIB)
    script = str(ROOT / "tests/engine/trainings/script/scripts/whole_on_card.py")
    tune = [sys.executable, "-m", "engine", "tune", "--device", "cuda:0", "--memory-limit", "1GiB", "--json"]
    done = cards.run(
        *tune, "--whole-run", "--no-compare-speed", "--", sys.executable, script, "{batch_size}", "{out}", seconds=900
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout)
    largest, note = result["boundary"]["largest_batch_size"], result["boundary"]["note"]
    assert result["boundary"]["certified"]
    assert f"of a batch of {largest} with rows of 512" in note
    assert result["training"]["whole_run"]["checkpoints"] >= 1
    assert result["training"]["whole_run"]["evaluation_batches"] > 0


def test_a_card_that_another_run_holds_is_refused_before_the_training_is_started(cards: Cards) -> None:
    cards.set(cards=2, memory=4 * GIB)
    tune = [sys.executable, "-m", "engine", "tune", "--json", "--max", "8", "--current-batch-size", "8"]
    command = ["--", sys.executable, SCRIPT, "--batch-size", "{batch_size}"]
    path = lock_path(device="cuda:1", uuid=uuid(1), folder=Path(cards.environment["MEMORYMARK_LOCK_DIR"]))
    with held(path, "cuda:1", work="another run"):
        refused = cards.run(*tune, *command)
        assert (refused.returncode, cards.contexts()) == (4, []), refused.stderr[-2_000:]
        assert "another run" in refused.stderr
        done = cards.run(*tune, "--device", "cuda:0", *command)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert json.loads(done.stdout)["device"]["uuid"] == uuid(0)


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


PROGRAM = """
import json, sys
import torch
from torch import nn
from engine.public import EngineError, tune

def make_step(size):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1_024, 1_024), nn.ReLU()) for _ in range(8)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    def step():
        optimizer.zero_grad()
        model(torch.empty(size, 256, 1_024, device="cuda")).sum().backward()
        optimizer.step()
    return step

exec(sys.argv[1])
try:
    found = tune(make_step, memory_limit="1GiB", current_batch_size=8, compare_speed=False, emit=id)
    print(json.dumps(found.to_dict()))
except EngineError as error:
    print(json.dumps(error.to_dict()))
"""


def tuned(cards: Cards, before: str) -> dict:
    cards.set(memory=4 * GIB)
    done = cards.python(PROGRAM, before)
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)


def test_a_function_of_a_program_gets_its_exact_size_on_a_card(cards: Cards) -> None:
    result = tuned(cards, "")
    boundary = result["boundary"]
    assert boundary["certified"]
    assert boundary["refused_batch_size"] == boundary["largest_batch_size"] + 1
    assert (result["device"]["kind"], result["spec"]["starting"]) == ("cuda", "fork")


BACKWARD = "nn.Linear(4, 4)(torch.ones(1, 4)).sum().backward()"


@pytest.mark.parametrize("before", ["torch.cuda.is_available()", "torch.ones(1, device='cuda')", BACKWARD])
def test_a_program_that_has_opened_the_driver_is_refused_before_a_fork_trains_on_the_cpu(
    cards: Cards, before: str
) -> None:
    error = tuned(cards, before)
    assert (error["code"], "the driver of CUDA" in error["message"]) == ("cannot_fork", True), error
