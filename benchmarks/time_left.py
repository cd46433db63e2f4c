"""Measures how wrong the time left is at half time, by replaying the recorded events of runs of different kinds.

    python benchmarks/time_left.py                   replay the recordings, write the result
    python benchmarks/time_left.py --record NAME     record runs anew on this machine (all of them take an hour or more)

At half time of a run, what it said to be left is compared with what was left. Said is the figure that the command line
and the portal show (`engine.describe.time_left`), unrounded. A recording holds the events of one real run, of each
only what is read, and when they came. A run that said nothing by half time counts as an error of 100 %.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.describe.time_left import TimeLeft  # noqa: E402
from engine.describe.time_left.live_progress import seconds_of  # noqa: E402 - the checkout is put on the path first

RECORDINGS = ROOT / "benchmarks" / "data" / "time_left.jsonl"
RESULT = ROOT / "benchmarks" / "results" / "time_left.json"
SCRIPTS, TESTED = ROOT / "benchmarks" / "tune_scripts", ROOT / "tests" / "engine" / "trainings" / "script" / "scripts"
WITHIN = 0.25

TINY = "bert-tiny cpu --memory-limit"
RUNS = {
    "measure-128MiB": f"{TINY} 128MiB --current-batch-size 8",
    "measure-128MiB-quiet": f"{TINY} 128MiB --current-batch-size 8",
    "measure-256MiB": f"{TINY} 256MiB --current-batch-size 16",
    "measure-sgd": f"{TINY} 384MiB --optimizer sgd --current-batch-size 32 --time-budget 240",
    "measure-budget": f"{TINY} 256MiB --time-budget 60",
    "measure-long-rows": f"{TINY} 128MiB --no-breakdown --sequence-length 256 --time-budget 300",
    "check-one-size": "resnet18 cpu --fits 8 --memory-limit 2GiB",
    "tune-argparse": "tune --memory-limit 24MiB --no-compare-speed -- PYTHON TESTED/plain.py --batch-size {batch_size}",
    "tune-iterable": "tune --memory-limit 16MiB --no-compare-speed -- PYTHON DIR/iterable.py {batch_size}",
    "tune-spawned": "tune --memory-limit 16MiB --no-compare-speed -- PYTHON DIR/workers.py {batch_size} 2 spawn",
    "tune-gan": "tune --memory-limit 16MiB --no-compare-speed --batch env -- PYTHON TESTED/gan.py",
    "tune-padded": "tune --memory-limit 16MiB --no-compare-speed -- PYTHON DIR/padded.py {batch_size}",
    "tune-recurrent-speed": "tune --memory-limit 16MiB -- PYTHON DIR/recurrent.py {batch_size}",
    "tune-argparse-speed": "tune --memory-limit 12MiB -- PYTHON TESTED/plain.py --batch-size {batch_size}",
    "tune-gan-speed": "tune --memory-limit 16MiB --batch env -- PYTHON TESTED/gan.py",
    "validate-resnet18": "validate resnet18 cpu",
    "validate-distilbert": "validate distilbert cpu --batch-size 4",
    "validate-compile": "validate bert-tiny cpu --check compile",
    "estimate-bert-tiny": "estimate bert-tiny --gpu all",
    "estimate-resnet18": "estimate resnet18 --gpu all",
    "estimate-bert": "estimate bert --gpu all",
    "estimate-vit": "estimate vit_b_16 --gpu all",
    "estimate-t5": "estimate t5-small --gpu all",
    "what-to-change": "estimate bert-tiny --gpu t4 --batch-size 20000 --what-to-change",
}
"""The options of each run; `--events` is added. The quiet one is recorded while nothing else runs on the machine."""

READ = {
    "started": ("spec", "gpus"),
    "phase": ("phase", "cards"),
    "stage": ("stage",),
    "device": ("device",),
    "probe_started": ("batch_size", "purpose"),
    "progress": ("batch_size", "purpose", "stage", "step"),
    "probe": ("probe",),
    "timing": ("stage", "round", "rounds_expected", "seconds_left", "seconds_left_at_most"),
    "estimate": ("estimate",),
    "result": (),
}
PARTS = {
    "spec": (
        *("time_budget_seconds", "current_batch_size", "soak_steps", "check_batch_size", "batch_size"),
        *("check", "compare_speed", "function"),
    ),
    "device": ("kind",),
    "probe": ("batch_size", "outcome", "purpose", "steps", "wall_seconds"),
    "estimate": ("largest_batch_size",),
}


def compact(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a replay reads of an event; None for one that it does not read."""
    if (names := READ.get(event["event"])) is None:
        return None
    found = {name: event[name] for name in ("event", "seconds", *names) if name in event}
    for name, parts in PARTS.items():
        if isinstance(whole := found.get(name), dict):
            found[name] = {part: whole[part] for part in parts if whole.get(part) is not None}
            if "command" in whole:
                found[name]["command"] = []  # that there is one makes it a tuning
    return found


def record(name: str) -> dict[str, Any]:
    """Execute a run and return its recording."""
    places = {"PYTHON": sys.executable, "DIR": str(SCRIPTS), "TESTED": str(TESTED)}
    options, dashes, command = RUNS[name].partition(" -- ")
    words = shlex.split(command)
    for short, place in places.items():
        words = [word.replace(short, place) for word in words]
    with tempfile.TemporaryDirectory() as locks:
        load = os.getloadavg()[0]
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "engine",
                *shlex.split(options),
                "--events",
                *([dashes.strip()] if dashes else []),
                *words,
            ],
            cwd=ROOT,
            env={**os.environ, "MEMORYMARK_LOCK_DIR": locks},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    events = [found for line in ended.stdout.splitlines() if (found := compact(json.loads(line))) is not None]
    loads = [round(load, 1), round(os.getloadavg()[0], 1)]
    return {"run": name, "options": RUNS[name], "load_average": loads, "status": ended.returncode, "events": events}


def replay(recording: dict[str, Any]) -> dict[str, Any]:
    """Return what a run said at half time, what was left then, and how often a larger figure was shown."""
    events = recording["events"]
    time_left = TimeLeft(next(event["spec"] for event in events if event["event"] == "started"))
    end = max(map(seconds_of, events))
    said, last, raised = None, 0.0, 0
    for event in events:
        now, before = seconds_of(event), time_left.said
        if last <= end / 2 < now:
            said = time_left.left(end / 2)
        time_left.take(event)
        time_left.say(now)
        raised += before is not None and time_left.said is not None and time_left.said.left(now) > before.left(now)
        last = now
    left = end / 2
    budget = time_left.spec.get("time_budget_seconds")
    error = 1.0 if said is None else abs(said - left) / left
    return {
        "run": recording["run"],
        "options": RUNS[recording["run"]],  # of today: the recorded ones may rest on other defaults
        "load_average": recording["load_average"],
        "seconds": round(end, 1),
        "said_at_half_time": None if said is None else round(said, 1),
        "left_at_half_time": round(left, 1),
        "error": round(error, 3),
        "raised": raised,
        "took_its_budget": budget is not None and end >= budget,
    }


def result_of(recordings: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the errors of all runs, and their median."""
    runs = [replay(recording) for recording in recordings]
    errors, others = ([run["error"] for run in kept] for kept in (runs, [r for r in runs if not r["took_its_budget"]]))
    return {
        "machine": {"cores": os.cpu_count(), "processor": processor(), "python": platform.python_version()},
        "runs": len(runs),
        "median_error": round(median(errors), 3),
        "median_error_of_those_that_did_not_take_their_budget": round(median(others), 3),
        "within_25_percent": sum(error <= WITHIN for error in errors),
        "said_nothing": sum(run["said_at_half_time"] is None for run in runs),
        "by_run": sorted(runs, key=lambda run: run["run"]),
    }


def processor() -> str:
    """Return the processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def read_recordings() -> list[dict[str, Any]]:
    """Return the newest recording of each run."""
    lines = [json.loads(line) for line in RECORDINGS.read_text().splitlines()] if RECORDINGS.exists() else []
    return list({line["run"]: line for line in lines}.values())


def main(arguments: list[str]) -> int:
    """Replay, or record first; 1 where the median error is larger than a quarter."""
    if arguments[:1] == ["--record"]:
        for name in arguments[1:] or RUNS:
            kept = [line for line in read_recordings() if line["run"] != name]
            kept.append(record(name))
            RECORDINGS.write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in kept))
    result = result_of(read_recordings())
    RESULT.write_text(f"{json.dumps(result, indent=1)}\n")
    print(json.dumps({name: result[name] for name in result if name != "by_run"}, indent=1))
    return int(result["median_error"] > WITHIN)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
