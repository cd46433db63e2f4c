"""Compares emulated ranks of public distributed scripts, unchanged, with two real ranks that gloo connects.

    python benchmarks/ranks_public.py --checkouts FOLDER          # all of public_rank_scripts.toml
    python benchmarks/ranks_public.py --checkouts FOLDER mingpt_ddp
    python benchmarks/ranks_public.py --summary                   # the table of the results that are there

Each script is started once as each of two ranks, and ROUNDS times on both of them, with the hook of `tune`. Of real
ranks gloo's own buffers are left out, which NCCL does not take from PyTorch's allocator; how much they add is told
by one more start. Checkouts, data and results are made as in `tune_public.py`.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from public_start import Script, in_folder  # noqa: E402 - the checkout is put on the path first
from tune_public import lines_of, listed  # noqa: E402

from engine.errors import CommandUntunable  # noqa: E402
from engine.trainings.script.judge.evidence import WatchedStart  # noqa: E402
from engine.trainings.script.spec import TuneSpec  # noqa: E402
from engine.trainings.script.start.command import begin_command  # noqa: E402
from engine.trainings.script.start.launch import Watching, start, start_ranks  # noqa: E402

LIST = ROOT / "benchmarks" / "public_rank_scripts.toml"
RESULTS = ROOT / "benchmarks" / "results" / "ranks_public.cpu.jsonl"
RANKS, ROUNDS, SECONDS = 2, 3, 300.0
WATCHING = Watching(5, timed_steps=1)
ON_CPU = ROOT / "benchmarks" / "ranks_on_cpu"
LAUNCHER = (sys.executable, "-m", "torch.distributed.run")


def main() -> int:
    """Compare the scripts and write a line for each; 1 where one did not train as an emulated rank."""
    scripts = {script.name: script for script in listed(LIST.read_text())}
    lines = lines_of(str(__doc__), RESULTS, scripts, compared)
    print(table(lines))
    return int(any("error" in line for line in lines))


def compared(script: Script, folder: Path) -> dict[str, Any]:
    """Return the line of one script: the peaks of its emulated ranks, and of the real ones of each start."""
    line: dict[str, Any] = {"name": script.name, "repository": script.repository, "command": script.command}
    line |= {
        "batch_size": script.current,
        "insists_on_gpus": any("RANKS_ON_CPU" in each for each in script.environment),
    }
    try:
        with _beside(script, folder, WITHOUT_STAGING="1"):
            emulated = _peaks(script, emulated=True)
            real = [_peaks(script, emulated=False) for _ in range(ROUNDS)]
        with _beside(script, folder):
            with_staging = _peaks(script, emulated=False)
    except CommandUntunable as refused:
        return line | {"error": refused.code, "message": str(refused)}
    worst = [max(peaks) for peaks in real]
    line |= {"emulated_bytes": emulated, "real_bytes": real, "real_with_staging_bytes": with_staging}
    return line | {
        "difference": round(max(emulated) / min(worst) - 1, 6),
        "spread": round(max(worst) / min(worst) - 1, 6),
    }


def _peaks(script: Script, *, emulated: bool) -> tuple[int, ...]:
    """Start the script once, on all of its ranks or in the place of each; the peak of each rank."""
    parts = shlex.split(script.command)
    command = [*LAUNCHER, *parts[1:]] if parts[0] == "torchrun" else [sys.executable, *parts[1:]]
    spec = TuneSpec(tuple(command), device="cpu", batch=script.batch or "template")
    spec = replace(spec, emulate_ranks=RANKS) if emulated else spec
    once = partial(start, partial(begin_command, spec), script.current)
    readings, ended = start_ranks(once, WATCHING, spec.emulated_ranks, seconds=SECONDS)
    ranks = [each.rank for each in spec.emulated_ranks]
    found = WatchedStart(
        readings, ended, script.current, limit_bytes=1 << 40, batch=spec.batch, honoured=(), emulated=ranks
    ).evidence()
    if not found.probe.fits:
        raise CommandUntunable("no_steps", f"{found.probe.error_type}: {found.probe.error_message}")
    return found.ranks


def _beside(script: Script, folder: Path, **more: str) -> AbstractContextManager[None]:
    """Start what is started in the script's folder, with its variables and what makes a CPU of its GPUs."""
    path = os.pathsep.join(filter(None, (str(ON_CPU), os.environ.get("PYTHONPATH"))))
    return in_folder(folder, {**script.variables(), **more, "PYTHONPATH": path})


def table(lines: list[dict[str, Any]]) -> str:
    """Return one line for each script."""
    rows = []
    for each in lines:
        said = f"{each['error']}: {each['message'][:120]}" if "error" in each else ""
        said = said or (
            f"{max(each['emulated_bytes']):>12,} emulated, {each['difference']:+.4%} of real ones, whose starts differ "
            f"by {each['spread']:.4%}; with gloo's buffers {max(each['real_with_staging_bytes']):,}"
        )
        rows.append(f"{each['name']:26} {said}")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
