"""Fails one of two ranks in many ways and looks what one start of `tune` makes of it.

    python benchmarks/rank_failures.py                          # 200 failures
    python benchmarks/rank_failures.py --minutes 25 --at-once 3 # as many as fit; called again, it goes on
    python benchmarks/rank_failures.py --only 17                # one of them, by its number

Each start is that of `engine/trainings/script/start/`: torchrun with two gloo ranks on a CPU, of which one is killed,
raises, exits or vanishes with status 0, hangs, or runs out of memory alone, at a moment and in a step drawn from a
seed. A start must end within its limit, leave no process and no lock, and be no answer: a probe that failed, out of
memory only where the rank ran out of memory, or a reason. A rank that exits after its last step has not failed, so that
is left out; and so is a start whose limit came before its rank was to fail, as on a busy machine: the next call makes
it again.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.errors import CommandUntunable  # noqa: E402 - the checkout is put on the path first
from engine.facts.result import Outcome  # noqa: E402
from engine.trainings.script.devices import devices_held  # noqa: E402
from engine.trainings.script.judge.evidence import WatchedStart  # noqa: E402
from engine.trainings.script.spec import TuneSpec  # noqa: E402
from engine.trainings.script.start.command import begin_command  # noqa: E402
from engine.trainings.script.start.launch import Place, Running, Watching, start  # noqa: E402

SCRIPT = ROOT / "benchmarks" / "tune_scripts" / "failing_rank.py"
RESULTS = ROOT / "benchmarks" / "results" / "rank_failures.cpu.jsonl"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
WAYS = ("is_killed", "raises", "exits", "vanishes", "hangs", "runs_out_of_memory")
MOMENTS = ("import", "build", "forward", "backward", "optimizer_step", "between_steps", "after_the_last")
LAST_STEP = 10  # the start ends after 11: 5 whose memory is read, 6 that are timed
BATCH_SIZE, SEED = 8, 20_261_122
ENDING_SECONDS = 15.0  # beyond the limit, to end the processes and read what they noted


@dataclass(frozen=True, slots=True)
class Failure:
    """What one rank does, when, and which of the two."""

    number: int
    how: str
    moment: str
    step: int
    rank: int


def failures(count: int) -> list[Failure]:
    """Return the failures, the same each time."""
    rng = random.Random(SEED)
    drawn: list[Failure] = []
    while len(drawn) < count:
        how, moment = rng.choice(WAYS), rng.choice(MOMENTS)
        step, rank = rng.randrange(1, LAST_STEP + 1), rng.randrange(2)
        if (how, moment) != ("exits", "after_the_last"):
            drawn.append(Failure(len(drawn), how, moment, step, rank))
    return drawn


def main() -> int:
    """Run the failures and write what came of them; 1 where one went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no start after that time")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--limit-seconds", type=float, default=60.0, help="of each start")
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes

    chosen = failures(options.count)
    if options.only is not None:
        print(json.dumps(tried(chosen[options.only], options.limit_seconds)))
        return 0

    def run(failure: Failure) -> None:
        if time.monotonic() < until:
            line = tried_with_locks(failure, options.limit_seconds)
            if not line["was_reached"]:
                print(f"{failure.number} did not come to its failure: {line['message']}", file=sys.stderr)
                return
            with RESULTS.open("a") as file:
                file.write(json.dumps(line) + "\n")

    done = {line["number"] for line in results() if "locks_are_free" in line}
    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(run, [failure for failure in chosen if failure.number not in done]))
    report = summary(results())
    print(json.dumps(report, indent=1))
    return int(any(report[name] for name in ("hangs", "leftovers", "locks_held", "wrong_answers")))


def results() -> list[dict[str, Any]]:
    """Return what came of the failures so far, of each the latest time."""
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    return list({line["number"]: line for line in lines}.values())


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "failures_forced": len(lines),
        "hangs": [line["number"] for line in lines if not line["ended_in_time"]],
        "leftovers": [line["number"] for line in lines if line["left_running"]],
        "locks_looked_at": sum("locks_are_free" in line for line in lines),
        "locks_held": [line["number"] for line in lines if not line.get("locks_are_free", True)],
        "wrong_answers": [line["number"] for line in lines if not line["is_right"]],
        "ended_as": dict(sorted(Counter(f"{line['how']}: {line['answer']}" for line in lines).items())),
        "longest_seconds": max(line["seconds"] for line in lines),
    }


def tried_with_locks(failure: Failure, limit_seconds: float) -> dict[str, Any]:
    """Start the training in a process of its own that holds the device's lock; see whether it is free afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        request = ["--only", str(failure.number), "--limit-seconds", str(limit_seconds)]
        own = {**os.environ, "MEMORYMARK_LOCK_DIR": folder}
        done = subprocess.run([sys.executable, __file__, *request], env=own, capture_output=True, text=True, check=True)
        line: dict[str, Any] = json.loads(done.stdout)
        return {**line, "locks_are_free": are_free(Path(folder))}


def are_free(folder: Path) -> bool:
    """Whether there are locks in the folder, and nobody holds any."""
    locks = list(folder.glob("*.lock"))
    for path in locks:
        with path.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
    return bool(locks)


def tried(failure: Failure, limit_seconds: float) -> dict[str, Any]:
    """Start the training once with the failure; how it ended, and what it was taken for."""
    with tempfile.TemporaryDirectory() as folder:
        return _tried(failure, limit_seconds, Path(folder, "reached"))


def _tried(failure: Failure, limit_seconds: float, reached: Path) -> dict[str, Any]:
    places: list[Place] = []
    where = (failure.how, failure.moment, str(failure.step), str(failure.rank), str(reached))
    spec = TuneSpec((*TORCHRUN, str(SCRIPT), "{batch_size}", *where), device="cpu", batch="template")

    def begin(batch_size: int, watching: Watching, place: Place) -> Running:
        places.append(place)
        return begin_command(spec, batch_size, watching, place)

    began = time.monotonic()
    with devices_held(spec):
        readings, ended = start(begin, BATCH_SIZE, Watching(memory_steps=5), seconds=limit_seconds)
    seconds = time.monotonic() - began
    watched = WatchedStart(readings, ended, BATCH_SIZE, limit_bytes=None, batch="template", honoured=())
    try:
        probe = watched.evidence().probe
        answer, message = str(probe.outcome), probe.error_message
    except CommandUntunable as reason:
        answer, message = reason.code, str(reason)
    return {
        **asdict(failure),
        "answer": answer,
        "message": (message or "").replace(f"{ROOT}/", "")[:300],
        "was_reached": reached.exists(),
        "is_right": is_right(failure, answer),
        "limit_seconds": limit_seconds,
        "ended_in_time": seconds < limit_seconds + ENDING_SECONDS,
        "left_running": running_of(str(places[0].notes)),
        "seconds": round(seconds, 2),
    }


def is_right(failure: Failure, answer: str) -> bool:
    """Whether a failed start was taken for one, and for out of memory only where it was."""
    if failure.how == "runs_out_of_memory":
        return answer == Outcome.OUT_OF_MEMORY
    return answer not in (Outcome.FITS, Outcome.OUT_OF_MEMORY, Outcome.SIZE_LIMIT)


def running_of(notes: str) -> list[int]:
    """Return the processes of a start that are still there: its folder of notes stands in their environment."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if notes.encode() in each.read_bytes():
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
