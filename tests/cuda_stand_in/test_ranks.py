"""Ranks that one card stands in for: an unchanged script for NCCL, its exact size, and what estimates say of it."""

import json
import sys
from typing import Any

import pytest

from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import ROOT, Cards

SCRIPT = str(ROOT / "tests/engine/trainings/script/scripts/ranks_on_card.py")
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "8")
OF_NCCL = 688 * MIB


def tuned(cards: Cards, *options: str, strategy: str, launcher: tuple[str, ...] = ()) -> dict[str, Any]:
    cards.set(memory=2 * GIB)
    tune = (sys.executable, "-m", "engine", "tune", "--json", "--emulate-ranks", "8")
    command = (sys.executable, *launcher, SCRIPT, "--batch-size", "{batch_size}", "--strategy", strategy)
    done = cards.run(*tune, *options, "--", *command, seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_sharded_training_for_nccl_gets_its_exact_size_on_one_card(cards: Cards) -> None:
    found = tuned(cards, "--current-batch-size", "12", "--max", "16", "--rank", "7", strategy="fsdp2")
    boundary, device = found["boundary"], found["device"]
    assert boundary["certified"]
    assert boundary["refused_batch_size"] == boundary["largest_batch_size"] + 1
    assert (device["kind"], device["limit_bytes"]) == ("cuda", 2 * GIB - OF_NCCL)
    assert found["largest"]["peak_reserved_bytes"] <= device["limit_bytes"]
    assert {probe["outcome"] for probe in found["probes"] if probe["batch_size"] > boundary["largest_batch_size"]} == {
        "out_of_memory"
    }
    assert (found["training"]["ranks"], found["kinds"]["boundary"]) == (8, "emulated")


def test_each_emulated_rank_of_a_replicated_training_has_its_peak(cards: Cards) -> None:
    found = tuned(
        cards, "--current-batch-size", "4", "--max", "4", "--rank", "0,7", strategy="ddp+zero1", launcher=TORCHRUN
    )
    assert found["boundary"]["largest_batch_size"] == 4
    assert len(found["training"]["rank_peaks_bytes"]) == 2


@pytest.mark.nightly
def test_a_training_that_is_sharded_the_older_way_is_emulated_too(cards: Cards) -> None:
    found = tuned(cards, "--current-batch-size", "4", "--max", "4", "--rank", "7", strategy="fsdp1")
    assert found["boundary"]["largest_batch_size"] == 4
    assert found["kinds"]["boundary"] == "emulated"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("library", "launcher"),
    [
        ("lightning", ()),
        (
            "accelerate",
            ("-m", "accelerate.commands.launch", "--num_processes", "2", "--use_fsdp", "--fsdp_version", "2"),
        ),
    ],
)
def test_a_training_that_a_library_shards_is_emulated(library: str, launcher: tuple[str, ...], cards: Cards) -> None:
    cards.set(memory=2 * GIB)
    script = ROOT / "tests/engine/trainings/script/scripts/sharded_by_library.py"
    tune = ("-m", "engine", "tune", "--json", "--emulate-ranks", "2", "--current-batch-size", "8", "--max", "8")
    command = (sys.executable, *launcher, str(script), "--by", library, "--batch-size", "{batch_size}")
    done = cards.run(sys.executable, *tune, "--", *command, seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout)
    assert (found["boundary"]["largest_batch_size"], len(found["training"]["rank_peaks_bytes"])) == (8, 2)
    assert found["kinds"]["boundary"] == "emulated"


def test_a_model_of_the_catalogue_is_emulated_as_its_first_two_ranks_and_the_last(cards: Cards) -> None:
    cards.set(memory=2 * GIB)
    own = ("bert-tiny", "--device", "cuda", "--strategy", "fsdp", "--emulate-ranks", "8", "--sequence-length", "64")
    done = cards.run(sys.executable, "-m", "engine", *own, "--max", "8", "--json", seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout)
    assert (found["boundary"]["largest_batch_size"], found["training"]["ranks"]) == (8, 8)
    assert len(found["training"]["rank_peaks_bytes"]) == 3
    assert (found["kinds"]["boundary"], found["device"]["limit_bytes"]) == ("emulated", 2 * GIB - OF_NCCL)


def test_estimates_of_ranks_are_what_an_emulated_one_holds_on_a_card(cards: Cards) -> None:
    cards.set(memory=80 * GIB)
    done = cards.run(sys.executable, "-m", "tests.cuda_stand_in.ranks_trial", seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout)
    assert found["estimated"] == pytest.approx(found["emulated"], rel=0.01)
    assert found["padded"] < MIB  # the largest gradient has 3 MiB


@pytest.mark.nightly
def test_the_script_for_a_machine_with_gpus_writes_the_emulated_peaks_where_there_is_one(cards: Cards) -> None:
    cards.set(memory=4 * GIB)
    done = cards.run(sys.executable, "benchmarks/ranks_on_gpus.py", "--strategy", "fsdp1", seconds=900)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout)
    assert (len(found["cards"]), "nccl_bytes" in found) == (1, False)
    assert (len(found["strategies"]["fsdp1"]["emulated_bytes"]), found["strategies"]["fsdp1"]["real_bytes"]) == (2, [])
