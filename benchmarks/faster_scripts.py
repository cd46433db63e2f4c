"""Whether `tune --faster` finds what slows a script, and whether its claims hold when its lines are tried afterwards.

Scripts with one planted cause, scripts of the corpus of `tune_corpus.py` as people write them, and public ones of
`public_scripts.toml`, unchanged, whose data and checkouts are made as in `tune_public.py`. What was claimed is
confirmed by ten fresh pairs of starts, today's and the chosen changes in turns: it holds where the two intervals of the
ratio overlap, or, of a claim that names a lower bound alone, where the fresh interval does not lie below it. Scripts
whose result is there already are left out. The loads of `speed_under_load.py` run beside the race alone: what is
claimed beside them must hold on the machine left alone. They are its children, so the race takes them for work of its
own: the harder case, because it cannot leave out the rounds that they disturbed.

    python benchmarks/faster_scripts.py [--seconds 600] [--script NAME] [--beside load] [--checkouts FOLDER] [--table]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from public_start import Script  # noqa: E402 - the checkout is put on the path first
from speed_under_load import Load  # noqa: E402
from tune_corpus import CORPUS, Case  # noqa: E402
from tune_public import cloned, copied, listed  # noqa: E402

from engine.errors import EngineError  # noqa: E402
from engine.facts.intervals import interval  # noqa: E402
from engine.facts.provenance.read import run_facts  # noqa: E402
from engine.machine.execution import Execution  # noqa: E402
from engine.machine.scratch import scratch_folder  # noqa: E402
from engine.trainings.script.faster.result import OwnRaceResult  # noqa: E402
from engine.trainings.script.faster.run import make_faster  # noqa: E402
from engine.trainings.script.faster.spec import OWN, OwnRaceSpec  # noqa: E402
from engine.trainings.script.faster.starts import StartFailed, Starts  # noqa: E402
from engine.trainings.script.notes.file_changes import WrittenFiles  # noqa: E402
from engine.trainings.script.spec import TEMPLATE  # noqa: E402
from engine.trainings.script.start.command import begin_command  # noqa: E402
from engine.trainings.script.start.held import HeldStarts  # noqa: E402

OUT = Path(__file__).parent / "results" / "faster_scripts.cpu.jsonl"
PAIRS, SECONDS = 10, 900


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
    "decoded_pictures": Planted("PYTHON DIR/decoded_pictures.py {batch_size}", "workers"),
    "tokenized_rows": Planted("PYTHON DIR/tokenized_rows.py {batch_size}", "workers"),
    "default_in_64_bits": Planted("PYTHON DIR/default_in_64_bits.py {batch_size}", "fp32"),
    "keeps_reconstructions": Planted("PYTHON DIR/keeps_reconstructions.py {batch_size}", "release-outputs"),
    "deep_and_narrow": Planted("PYTHON DIR/deep_and_narrow.py {batch_size}", "fused"),
}
OF_CORPUS = (
    *("argparse", "readme", "hard_coded", "accelerate", "lightning"),
    *("gan", "padded", "recurrent", "averaged", "hf_trainer"),
)
PUBLIC = {"nanogpt": 12, "imagenet": 4, "lightning_autoencoder": 32, "trl_sft": 8}
"""Batch sizes: their own defaults, but for `imagenet`, whose 256 take minutes a step on a CPU."""


@contextmanager
def spec_of(name: str, seconds: float, checkouts: Path | None) -> Iterator[OwnRaceSpec]:
    """Give the race of a script; a public one is started in a copy of its repository."""
    if name not in PUBLIC:
        command = PLANTED[name].command if name in PLANTED else CORPUS[name].command
        yield _spec(tuple(Case(command).arguments()), 32, seconds)
        return
    script = next(each for each in listed() if each.name == name)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faster")))
        stack.enter_context(_environment(script))
        folder = stack.enter_context(copied(script, checkouts or cloned(script, scratch), scratch))
        yield _spec(tuple(script.arguments()), PUBLIC[name], seconds, str(folder))


def _spec(arguments: tuple[str, ...], batch_size: int, seconds: float, directory: str | None = None) -> OwnRaceSpec:
    batch = TEMPLATE if any("{batch_size}" in each for each in arguments) else OWN
    return OwnRaceSpec(
        arguments,
        batch=batch,
        device="cpu",
        time_budget_seconds=seconds,
        current_batch_size=batch_size,
        directory=directory,
    )


@contextmanager
def _environment(script: Script) -> Iterator[None]:
    """Set the variables that a public script needs."""
    before = dict(os.environ)
    os.environ |= dict(each.split("=", 1) for each in script.environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def line_of(name: str, spec: OwnRaceSpec, beside: str) -> dict[str, Any]:
    """Race one script beside a load, and confirm without it what was claimed."""
    cause = PLANTED[name].cause if name in PLANTED else None
    row: dict[str, Any] = {"script": name, "beside": beside, "batch_size": spec.current_batch_size, "cause": cause}
    row |= {"cores": len(os.sched_getaffinity(0))}
    try:
        with Load(beside, seed=1):
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
    """Whether the planted cause is chosen, or told for its memory in the headline or the sentences below it."""
    label = next((each.label for each in found.rows if each.name == cause), "")
    return cause in found.chosen or bool(label and label in " ".join([found.headline, *found.sentences]))


def confirmed(spec: OwnRaceSpec, found: OwnRaceResult) -> dict[str, Any]:
    """Start today's training and the chosen changes in turns, and compare the ratio with the claim."""
    ratios, of_others = list[float](), list[float]()
    with scratch_folder() as cache_folder:
        begin = partial(begin_command, spec)
        execution = Execution(lambda _: None, 10.0 * SECONDS)
        files = WrittenFiles(os.getcwd(), execution.log)
        others = {"started_as": run_facts(), "cache_folder": cache_folder, "files": files}
        starts = Starts(spec=spec, execution=execution, begin=begin, waiting=HeldStarts(files), **others)
        starts.waiting.may_hold = False
        starts.first()
        if "compile" in found.chosen:  # fills the cache, as the race's first start did
            starts.trial(found.chosen)
        for number in range(PAIRS):
            speeds: dict[tuple[str, ...], float] = {}
            order: list[tuple[str, ...]] = [(), found.chosen]
            for names in order if number % 2 == 0 else order[::-1]:
                timed = starts.timed(names)
                speeds[names] = timed.samples_per_second
                of_others += [] if timed.others_cores is None else [timed.others_cores]
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
    lines = ["| script | beside | answer | cause named | ten fresh pairs | holds |", "|---|---|---|---|---|---|"]
    for row in rows():
        fresh = row.get("confirmed")
        pairs = "-" if not fresh else "{value:.2f}x [{low:.2f}, {high:.2f}]".format(**fresh["gain"])
        named = {None: "-", True: "yes", False: "no"}[row.get("is_cause_named")]
        answer = row.get("headline") or row.get("error")
        holds = "-" if not fresh else "yes" if fresh["holds"] else "no"
        lines.append(f"| {row['script']} | {row['beside']} | {answer} | {named} | {pairs} | {holds} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", action="append", help="these only")
    parser.add_argument(
        "--beside", choices=("quiet", "load", "steady"), default="quiet", help="what runs beside a race"
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a race")
    parser.add_argument("--checkouts", type=Path, help="where the public repositories lie as OWNER/NAME")
    parser.add_argument("--table", action="store_true", help="print the table of what is there, and race nothing")
    given = parser.parse_args()
    if not given.table:
        raced = {row["script"] for row in rows() if row["beside"] == given.beside}
        for name in (*PLANTED, *OF_CORPUS, *PUBLIC):
            if name in raced or (given.script and name not in given.script):
                continue
            began = time.monotonic()
            try:
                with spec_of(name, given.seconds, given.checkouts) as spec:
                    line = line_of(name, spec, given.beside)
            except (StartFailed, EngineError) as error:
                line = {"script": name, "beside": given.beside, "error": f"a start to confirm it failed: {error}"}
            with OUT.open("a") as out:
                out.write(json.dumps(line) + "\n")
            print(f"{name}: {line.get('headline') or line.get('error')} ({time.monotonic() - began:.0f} s)", flush=True)
    print(table())


if __name__ == "__main__":
    main()
