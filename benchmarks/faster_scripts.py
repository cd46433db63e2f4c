"""Whether `tune --faster` finds what slows a script, and whether its claims hold when its lines are tried afterwards.

Scripts with one planted cause, and scripts of the corpus of `tune_corpus.py` as people write them. What was claimed is
confirmed by ten fresh pairs of starts, today's and the chosen changes in turns: it holds where the two intervals of the
ratio overlap, or, of a claim that names a lower bound alone, where the fresh interval does not lie below it. Scripts
whose result is there already are left out.

    taskset -c 0 python benchmarks/faster_scripts.py [--script many_tensors] [--table]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from tune_corpus import CORPUS, Case  # noqa: E402 - the checkout is put on the path first

from engine.errors import EngineError  # noqa: E402
from engine.execution import Execution  # noqa: E402
from engine.machine.scratch import scratch_folder  # noqa: E402
from engine.provenance.read import run_facts  # noqa: E402
from engine.results.intervals import interval  # noqa: E402
from engine.tune.faster.result import OwnRaceResult  # noqa: E402
from engine.tune.faster.run import make_faster  # noqa: E402
from engine.tune.faster.spec import OWN, OwnRaceSpec  # noqa: E402
from engine.tune.faster.starts import StartFailed, Starts  # noqa: E402
from engine.tune.spec import TEMPLATE  # noqa: E402
from engine.tune.start.command import begin_command  # noqa: E402

OUT = Path(__file__).parent / "results" / "faster_scripts.cpu.jsonl"
PAIRS, SECONDS = 10, 900.0


@dataclass(frozen=True, slots=True)
class Planted:
    """A script that is slow by one cause, and the change that is to be named."""

    command: str
    cause: str


PLANTED = {
    "waits_for_rows": Planted("PYTHON TESTED/slow_rows.py {batch_size}", "workers"),
    "python_transform": Planted("PYTHON DIR/python_transform.py {batch_size}", "workers"),
    "in_64_bits": Planted("PYTHON TESTED/in_64_bits.py {batch_size}", "fp32"),
    "keeps_outputs": Planted("PYTHON TESTED/keeps_outputs.py {batch_size}", "release-outputs"),
    "many_tensors": Planted("PYTHON TESTED/many_tensors.py", "fused"),
}
OF_CORPUS = (
    *("argparse", "readme", "hard_coded", "accelerate", "lightning"),
    *("gan", "padded", "recurrent", "averaged", "hf_trainer"),
)


def cases() -> dict[str, tuple[str, str | None]]:
    """Return command and planted cause by name."""
    planted = {name: (each.command, each.cause) for name, each in PLANTED.items()}
    return {**planted, **{name: (CORPUS[name].command, None) for name in OF_CORPUS}}


def spec_of(command: str) -> OwnRaceSpec:
    batch = TEMPLATE if "{batch_size}" in command else OWN
    arguments = tuple(Case(command).arguments())
    return OwnRaceSpec(arguments, batch=batch, device="cpu", time_budget_seconds=SECONDS, current_batch_size=32)


def line_of(name: str, command: str, cause: str | None) -> dict[str, Any]:
    """Race one script, and confirm what was claimed."""
    spec = spec_of(command)
    row: dict[str, Any] = {"script": name, "command": command, "cause": cause, "cores": len(os.sched_getaffinity(0))}
    try:
        found = make_faster(spec)
    except EngineError as error:
        return row | {"error": str(error)}
    row |= {"headline": found.headline, "chosen": list(found.chosen), "claim": found.verdict.claim}
    row |= {"gain": None if found.verdict.gain is None else asdict(found.verdict.gain)}
    row |= {"others_cores": found.others_cores, "starts": found.starts, "seconds": round(found.total_seconds, 1)}
    row["variants"] = [asdict(each) for each in found.rows]
    row["is_cause_named"] = None if cause is None else is_named(cause, found)
    return row | {"confirmed": confirmed(spec, found) if found.chosen else None}


def is_named(cause: str, found: OwnRaceResult) -> bool:
    """Whether the planted cause is chosen, or named for its memory in the headline."""
    label = next((each.label for each in found.rows if each.name == cause), "")
    return cause in found.chosen or bool(label and label in found.headline)


def confirmed(spec: OwnRaceSpec, found: OwnRaceResult) -> dict[str, Any]:
    """Start today's training and the chosen changes in turns, and compare the ratio with the claim."""
    ratios, of_others = list[float](), list[float]()
    with scratch_folder() as cache_folder:
        begin = partial(begin_command, spec)
        execution = Execution(lambda _: None, 10 * SECONDS)
        starts = Starts(spec=spec, execution=execution, begin=begin, started_as=run_facts(), cache_folder=cache_folder)
        starts.step_seconds = starts.first().step_seconds
        workers = max(starts.known_facts.workers_to_try, starts.known_facts.workers)
        if "compile" in found.chosen:  # fills the cache, as the race's first start did
            starts.trial(found.chosen)
        for number in range(PAIRS):
            speeds: dict[tuple[str, ...], float] = {}
            order: list[tuple[str, ...]] = [(), found.chosen]
            for names in order if number % 2 == 0 else order[::-1]:
                speeds[names], others = starts.speed(names, workers)
                of_others += [] if others is None else [others]
            ratios.append(math.log(speeds[found.chosen] / speeds[()]))
    fresh, claimed = interval(ratios).exp(), found.verdict.gain
    assert claimed is not None
    holds = fresh.high >= claimed.low and (found.verdict.claim == "at_least" or fresh.low <= claimed.high)
    return {
        "gain": asdict(fresh),
        "holds": holds,
        "ratios": [round(math.exp(r), 4) for r in ratios],
        "others_cores": fmean(of_others) if of_others else None,
    }


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []


def table() -> str:
    """Write a line for each script, and the counts."""
    lines = ["| script | answer | cause named | ten fresh pairs | holds |", "|---|---|---|---|---|"]
    for row in rows():
        fresh = row.get("confirmed")
        pairs = "-" if not fresh else "{value:.2f}x [{low:.2f}, {high:.2f}]".format(**fresh["gain"])
        named = {None: "-", True: "yes", False: "no"}[row.get("is_cause_named")]
        answer = row.get("headline") or row.get("error")
        holds = "-" if not fresh else "yes" if fresh["holds"] else "no"
        lines.append(f"| {row['script']} | {answer} | {named} | {pairs} | {holds} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", action="append", help="these only")
    parser.add_argument("--table", action="store_true", help="print the table of what is there, and race nothing")
    given = parser.parse_args()
    if not given.table:
        raced = {row["script"] for row in rows()}
        for name, (command, cause) in cases().items():
            if name in raced or (given.script and name not in given.script):
                continue
            began = time.monotonic()
            try:
                line = line_of(name, command, cause)
            except StartFailed as error:
                line = {"script": name, "error": f"a start to confirm it failed: {error}"}
            with OUT.open("a") as out:
                out.write(json.dumps(line) + "\n")
            print(f"{name}: {line.get('headline') or line.get('error')} ({time.monotonic() - began:.0f} s)", flush=True)
    print(table())


if __name__ == "__main__":
    main()
