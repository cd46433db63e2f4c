"""`watch` and what it explains, on a card: what was never used, growth, and why a training ran out of memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import Cards

TRAINING = """
import sys, time, torch
what, size = sys.argv[1], int(sys.argv[2])
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 4)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
data = torch.utils.data.TensorDataset(torch.ones((160 if size < 1_000 else 2) * size, 256))
kept = []
def evaluate():
    with torch.no_grad():
        return model[0](torch.ones(10_000_000, 256, device="cuda"))
for step, (inputs,) in enumerate(torch.utils.data.DataLoader(data, batch_size=size)):
    optimizer.zero_grad()
    model(inputs.cuda()).sum().backward()
    optimizer.step()
    if what == "grows":
        kept.append(torch.empty(2**18, device="cuda"))
        kept.append(torch.ones(2**18))
        time.sleep(0.03)
    if what == "evaluates" and step == 5:
        evaluate()
"""


def watched(cards: Cards, folder: Path, *arguments: object) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (folder / "train.py").write_text(TRAINING)
    command = [sys.executable, str(folder / "train.py"), *map(str, arguments)]
    done = cards.run(sys.executable, "-m", "engine", "watch", "--json", "--", *command, seconds=300)
    return done, json.loads(done.stderr.strip().splitlines()[-1])


def test_what_a_training_left_unused_and_which_batch_would_fit_are_told(cards: Cards, tmp_path: Path) -> None:
    cards.set(memory=4 * GIB)
    done, report = watched(cards, tmp_path, "trains", 64)
    assert (done.returncode, report["steps"], report["batch_size"]) == (0, 160, 64)
    assert (report["total_bytes"], report["growth"], report["death"]) == (4 * GIB, None, None)
    assert report["peak_bytes"] < 64 * MIB
    assert report["estimated_fitting_batch_size"] > 10_000


def test_growth_on_a_card_is_told_by_the_step(cards: Cards, tmp_path: Path) -> None:
    cards.set(memory=4 * GIB)
    _, report = watched(cards, tmp_path, "grows", 8)
    assert report["growth"]["bytes_per_step"] == pytest.approx(MIB, rel=0.05)
    assert report["growth"]["ends_at"][0] == pytest.approx(4 * GIB / MIB, rel=0.1)
    assert report["host_growth"]["bytes_per_step"] == pytest.approx(MIB, rel=0.1)


@pytest.mark.parametrize(
    ("what", "size", "cause"), [("trains", 1_000_000, "too_large"), ("evaluates", 16, "evaluation")]
)
def test_a_training_that_ran_out_of_memory_is_explained(
    cards: Cards, tmp_path: Path, what: str, size: int, cause: str
) -> None:
    cards.set(memory=4 * GIB)
    done, report = watched(cards, tmp_path, what, size)
    assert (done.returncode, report["death"]["cause"]) == (1, cause), report["death"]
    assert report["death"]["figures"]["total_bytes"] == 4 * GIB


def test_another_process_that_holds_the_card_is_named_as_the_cause(cards: Cards, tmp_path: Path) -> None:
    cards.set(memory=4 * GIB)
    assert cards.tenant().take(3 * GIB) == 0
    done, report = watched(cards, tmp_path, "trains", 300_000)
    assert (done.returncode, report["death"]["cause"]) == (1, "another_process"), report["death"]


SNAPSHOT = """
import torch
torch.cuda.memory._record_memory_history()
def hold(mib):
    return torch.empty(mib * 2**18, device="cuda")
kept = [hold(300) for _ in range(8)]
del kept[::2]
try:
    torch.empty(2**30, device="cuda")
except torch.cuda.OutOfMemoryError:
    torch.cuda.memory._dump_snapshot("memory.pickle")
"""


def test_a_snapshot_shows_what_was_live_and_where_it_was_made(cards: Cards, tmp_path: Path) -> None:
    cards.set(memory=4 * GIB)
    (tmp_path / "snap.py").write_text(SNAPSHOT.replace("memory.pickle", str(tmp_path / "memory.pickle")))
    assert cards.run(sys.executable, str(tmp_path / "snap.py"), seconds=300).returncode == 0
    explained = cards.run(
        sys.executable, "-m", "engine", "explain", str(tmp_path / "memory.pickle"), "--json", seconds=60
    )
    found = json.loads(explained.stdout)
    assert found["figures"]["requested_bytes"] == 4 * GIB
    assert found["figures"]["allocated_bytes"] == 4 * 300 * MIB
    assert found["places"][0]["bytes"] == 4 * 300 * MIB
    assert found["places"][0]["place"].endswith("snap.py:5 in hold")
