"""What a start costs more where its user's files are kept as they are: layers and saving beside a start without either.

    python -m benchmarks.protection_cost --rounds 15 > benchmarks/results/protection_cost.cpu.json

Each round runs the same script once in each way, in an order that turns from round to round. The scripts: one that
imports torch, trains a few steps and saves a checkpoint over another one; one that writes 2,000 small files. Seconds
are of the whole command, guardian included; `more` is the difference to the start of the same round without protection.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from engine.tune.file_changes import Way
from engine.tune.start.protection import GUARDIAN, Protection

TRAINS = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 10))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(64, 256)).sum().backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""
WRITES = """
import os
os.makedirs("many", exist_ok=True)
for number in range(2000):
    with open(f"many/{number}", "w") as file:
        file.write("a line")
"""
SCRIPTS = {"trains and saves": TRAINS, "writes 2,000 files": WRITES}


def seconds_of(way: Way, script: str, folder: Path) -> float:
    """Run a script in one way; its seconds."""
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "out").mkdir()
        settings = json.dumps(Protection(way).settings(Path(own), 8, str(folder), {}))
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-I", str(GUARDIAN), settings, sys.executable, "-c", script],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        status = process.stdout.read()
        seconds = time.perf_counter() - began
        process.communicate()
    if status.strip() != b"0":
        raise RuntimeError(f"the script failed under {way}")
    return seconds


def measured(script: str, rounds: int) -> dict[str, object]:
    """Return the median seconds of each way, and the quartiles of what it costs more."""
    found: dict[Way, list[float]] = {way: [] for way in Way}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model.pt").write_bytes(b"a model" * 1_000_000)
        seconds_of(Way.NOTHING, "import torch", Path(folder))  # into the page cache
        for number in range(rounds):
            for place in range(len(Way)):
                way = list(Way)[(number + place) % len(Way)]
                found[way].append(seconds_of(way, script, Path(folder)))
    told: dict[str, object] = {}
    for way, seconds in found.items():
        more = [each - plain for each, plain in zip(seconds, found[Way.NOTHING], strict=True)]
        quartiles = [round(each, 3) for each in statistics.quantiles(more, n=4)]
        told[way.value] = {"median_seconds": round(statistics.median(seconds), 3), "more_seconds_quartiles": quartiles}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(json.dumps({name: measured(script, rounds) for name, script in SCRIPTS.items()}, indent=1))


if __name__ == "__main__":
    main()
