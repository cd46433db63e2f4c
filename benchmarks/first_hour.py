"""The first hour on a GPU: each command in its order, what it should show, and what it showed.

    python benchmarks/first_hour.py                        on cuda:0, into first_hour.jsonl
    python benchmarks/first_hour.py --device cuda:1 --output FILE

Nobody else may use the card. A line of JSON is kept as soon as a command ends: its name, the command, what is
expected, the last that it printed, its exit status and its seconds. The same call again goes on with the next one.
Not run yet: no GPU was at hand.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Experiment:
    """A question to a card; `command` is what stands after `python`."""

    name: str
    command: tuple[str, ...]
    expected: str
    environment: dict[str, str] = field(default_factory=dict)


def experiments(device: str) -> Iterator[Experiment]:
    def search(model: str, *options: str) -> tuple[str, ...]:
        return "-m", "engine", model, device, *options, "--events"

    yield Experiment(
        "a first run under a limit",
        search("bert-tiny", "--memory-limit", "2GiB"),
        "certified; at most 2 GiB reserved at the peak; less than 90 s",
    )
    yield Experiment(
        "the card's own constants",
        ("-m", "engine", "calibrate", device, "--json"),
        "the workspaces of cuBLAS that the catalogue of GPUs has, none more for cuBLASLt",
    )
    yield Experiment(
        "the allocator and predicted peaks",
        ("benchmarks/allocator_on_device.py", "--device", device),
        "status 0: no event differs; peaks within 2 %, of ResNet-50 up to 6 % below",
    )
    for turn in (1, 2, 3):
        yield Experiment(
            f"the same run, {turn} of 3",
            search("bert", "--precision", "bf16"),
            "the same certified size and peaks each time; at most 8 probes and 2 refusals",
        )
    yield Experiment(
        "expandable segments",
        search("bert", "--precision", "bf16"),
        "certified, and no smaller than the same run without",
        {"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
    )
    for model in ("bert", "gpt2", "resnet"):
        options = ("--mode", "eval", "--optimizer", "none", "--precision", "fp32")
        yield Experiment(f"{model}, forward and backward", search(model, *options), "certified")
    for model in ("gpt2", "resnet"):
        options = ("--mode", "train", "--optimizer", "adamw", "--precision", "bf16")
        yield Experiment(f"{model}, AdamW in bf16", search(model, *options), "certified")


def answer(experiment: Experiment) -> dict[str, Any]:
    """Run the command in a process of its own. Whatever goes wrong is what it showed."""
    started = time.monotonic()
    environment = {**os.environ, **experiment.environment}
    command = [sys.executable, *experiment.command]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return {
        "name": experiment.name,
        "command": " ".join([*(f"{k}={v}" for k, v in experiment.environment.items()), "python", *experiment.command]),
        "expected": experiment.expected,
        "seen": _last_of(done.stdout) or done.stderr[-2000:],
        "status": done.returncode,
        "seconds": round(time.monotonic() - started, 1),
    }


def _last_of(output: str) -> Any:
    """The whole output where it is one JSON document, else its last line."""
    for text in (output, output.strip().rpartition("\n")[2]):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            pass
    return output.strip().rpartition("\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--output", type=Path, default=Path("first_hour.jsonl"))
    options = parser.parse_args()
    known = options.output.read_text().splitlines() if options.output.exists() else []
    answered = {json.loads(line)["name"] for line in known}
    for experiment in experiments(options.device):
        if experiment.name not in answered:
            line = answer(experiment)
            with options.output.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(f"{line['name']}: status {line['status']}, {line['seconds']} s; expected: {line['expected']}")


if __name__ == "__main__":
    main()
