"""Races the settings of eight catalogue models on a CPU, by the command that a user types, and keeps the results.

A result is kept whole: its rounds, its table, its headline. Models whose result is there already are not raced again.
On a machine with other work on its cores nothing is claimed; to race beside other work, keep a core for the races:

    taskset -c 0 python benchmarks/faster_models.py [--model resnet18] [--table]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = Path(__file__).parent / "results" / "faster_models.cpu.jsonl"
COMMANDS = (
    "bert-tiny cpu --sequence-length 32 --memory-limit 256MiB --current-batch-size 8",
    "mobilenet-v3-large cpu --image-size 64 --memory-limit 512MiB --current-batch-size 8",
    "resnet18 cpu --image-size 64 --memory-limit 512MiB --current-batch-size 8",
    "efficientnet-b0 cpu --image-size 64 --memory-limit 512MiB --current-batch-size 8",
    "t5-small cpu --sequence-length 32 --memory-limit 2GiB --current-batch-size 4",
    "whisper-tiny cpu --memory-limit 2GiB --current-batch-size 1",
    "distilbert cpu --sequence-length 32 --memory-limit 2GiB --current-batch-size 4",
    "pythia-160m cpu --sequence-length 32 --memory-limit 4GiB --current-batch-size 2",
)
SECONDS = 400


def race(command: str) -> dict[str, Any]:
    """Race the settings of one model and return its row: command, cores, exit status and result."""
    arguments = ["faster", *shlex.split(command), "--time-budget", str(SECONDS), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "engine", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    row = {"command": f"python -m engine {shlex.join(arguments)}", "exit_status": done.returncode}
    return row | {"cores": len(os.sched_getaffinity(0)), "result": json.loads(done.stdout)}


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []


def table() -> str:
    """Write one line for each model: what was claimed, and how much of the machine other programs took."""
    lines = ["| model | answer | changes tried | others used | seconds |", "|---|---|---|---|---|"]
    for row in rows():
        result = row["result"]
        others = f"{result['others_cores'] or 0:.2f} of {row['cores']} cores"
        model, tried = result["spec"]["model"], len(result["rows"]) - 1
        lines.append(f"| {model} | {result['headline']} | {tried} | {others} | {result['total_seconds']:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="race this one only")
    parser.add_argument("--table", action="store_true", help="print the table of what is there, and race nothing")
    given = parser.parse_args()
    if not given.table:
        raced = {row["result"]["spec"]["model"] for row in rows()}
        for command in COMMANDS:
            model = command.split()[0]
            if model not in raced and given.model in (None, model):
                with OUT.open("a") as out:
                    out.write(json.dumps(race(command)) + "\n")
    print(table())


if __name__ == "__main__":
    main()
