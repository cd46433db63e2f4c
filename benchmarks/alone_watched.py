"""Runs public scripts alone and watched by MemoryMark, and compares their losses and how they end.

    python benchmarks/alone_watched.py --checkouts FOLDER              # all of them, added to the results
    python benchmarks/alone_watched.py --checkouts FOLDER mnist unet   # some
    python benchmarks/alone_watched.py --summary                       # the table of the results that are there

The scripts and their data are those of `tune_public.py`, with today's size and the same random numbers in each start.
A loss is the number that a backward pass begins at, compared bit by bit: what a script prints may be rounded, and a
progress bar shows the loss of the moment at which it is drawn. Where they differ, the script runs alone once more: if
those two differ, too, it is not repeatable, and how far the watched run is from the first is set beside how far the
second is.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from public_start import Script, alone_run, losses_differ, watched_run  # noqa: E402 - the checkout is on the path first
from tune_public import lines_of, listed  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "alone_watched.cpu.jsonl"
SAME, UNREPEATABLE, FAILS, DIFFERS, NOTHING = "the same", "not repeatable", "fails alone, too", "DIFFERS", "NO LOSS"
SECONDS, COMPILED_SECONDS = 45.0, 200.0
COMPILED = {
    "nanogpt": ("--compile=False", "--compile=True"),
    "llama2c": ("--compile=False", "--compile=True"),
    "timm": ("--log-interval 1", "--log-interval 1 --torchcompile"),
}
"""What compiles the model of a script of the list."""


def main() -> int:
    """Run the scripts and write a line for each; 1 where the watch changed something."""
    lines = lines_of(str(__doc__), RESULTS, cases(), compared)
    print(table(lines))
    return int(any(line["verdict"] in (DIFFERS, NOTHING) for line in lines))


def cases() -> dict[str, Script]:
    """Return the scripts of the list, ended after two epochs, and some of them compiled."""
    found = {script.name: script.ending() for script in listed()}
    for name, (before, after) in COMPILED.items():
        script = found[name]
        found[f"{name}_compiled"] = replace(
            script, name=f"{name}_compiled", command=script.command.replace(before, after)
        )
    return found


def compared(script: Script, folder: Path) -> dict[str, Any]:
    """Run a script alone and watched; what differs, and whether it does so without the watch, too."""
    size, seconds = script.current, COMPILED_SECONDS if script.name.endswith("_compiled") else SECONDS
    alone, watched = alone_run(script, folder, size, seconds), watched_run(script, folder, size, seconds)
    count, apart = losses_differ(alone, watched)
    have_ended = None not in (alone.exit_status, watched.exit_status)
    ends_same = not have_ended or (alone.exit_status, alone.count()) == (watched.exit_status, watched.count())
    is_same, spread = apart == 0.0 and ends_same, None
    nothing = FAILS if alone.exit_status and alone.exit_status == watched.exit_status else NOTHING
    if not is_same:
        spread = losses_differ(alone, alone_run(script, folder, size, seconds))[1]
    return {
        "name": script.name,
        "command": script.command,
        "batch_size": size,
        "verdict": nothing if apart is None else SAME if is_same else UNREPEATABLE if spread else DIFFERS,
        "losses": [alone.count(), watched.count()],
        "losses_compared": count,
        "watched_apart": apart,
        "alone_apart": spread,
        "exit_statuses": [alone.exit_status, watched.exit_status],
        "printed": [len(alone.printed), len(watched.printed)],
        "printed_is_same": _is_same_text(alone.printed, watched.printed),
    }


def _is_same_text(one: list[str], other: list[str]) -> bool | None:
    pairs = list(zip(one, other, strict=False))
    return all(a == b for a, b in pairs) if pairs else None


def table(lines: list[dict[str, Any]]) -> str:
    """Return one line for each script and the counts."""
    rows = [
        f"{each['name']:28} {each['verdict']:16} {each['losses_compared']:6} losses, {each['watched_apart']} apart "
        f"(alone: {each['alone_apart']}); exit {each['exit_statuses']}; printed the same: {each['printed_is_same']}"
        for each in lines
    ]
    counts = {v: sum(each["verdict"] == v for each in lines) for v in (SAME, UNREPEATABLE, FAILS, DIFFERS, NOTHING)}
    return "\n".join([*rows, f"{len(lines)} scripts: {counts}; {sum(e['losses_compared'] for e in lines)} losses"])


if __name__ == "__main__":
    sys.exit(main())
