"""Other users of the same machine: traps in its temporary folders (M10), lies in its locks (L2), its processes (L6)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.attacks.commands import tuned
from benchmarks.attacks.portal import Attacked, Row, decided, row
from benchmarks.report_faults import ROOT

SCRIPT = """
import json, os, sys
import torch
with open("seen.jsonl", "a") as file:
    file.write(json.dumps({name: value for name, value in os.environ.items() if "TOKEN" in name}) + "\\n")
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    model(torch.randn(int(sys.argv[1]), 256)).sum().backward()
    optimizer.step()
"""
HOLD = """
import sys, time
from pathlib import Path
from engine.machine.device_lock import held
with held(Path(sys.argv[1]), "cpu", work="an honest run"):
    print("held", flush=True)
    time.sleep(600)
"""
TAKE = """
import sys
from pathlib import Path
from engine.errors import EngineError
from engine.machine.device_lock import held
try:
    with held(Path(sys.argv[1]), "cpu"):
        print("taken")
except EngineError as exc:
    print(exc)
"""
DEAD = 4_194_000
"""The number of a process that is not there: above what Linux gives by default."""


def traps_and_tokens(portal: Attacked) -> Iterator[Row]:
    """Tune a script beside traps in the temporary folder, with a token in the environment."""
    sender = portal.person()
    with tempfile.TemporaryDirectory(prefix="memorymark-traps-") as name:
        folder, traps = Path(name), Path(name) / "tmp"
        traps.mkdir()
        others = folder / "of somebody else"
        (others / "notes").mkdir(parents=True)
        os.mkfifo(traps / "memorymark-scratch-x")
        (traps / "memorymark-scratch-link").symlink_to(others)
        (traps / "memorymark-scratch-file").touch()
        (folder / "train.py").write_text(SCRIPT)
        done, seconds = tuned(folder, portal.url, sender.secret, TMPDIR=str(traps))
        kept = (others / "notes").is_dir() and (traps / "memorymark-scratch-x").exists()
        said = f"exit status {done.returncode} after {seconds:.0f} s; the traps and what a link points to "
        said += "are still there" if kept else "are gone"
        tried = "tune beside a FIFO, a link and a file named memorymark-scratch-* (hung until killed)"
        yield row(
            "M10",
            tried,
            "an answer, and nothing of others touched",
            done.returncode == 0 and kept,
            said,
            seconds=seconds,
        )
        seen = [json.loads(line) for line in (folder / "seen.jsonl").read_text().splitlines()]
        files = [each.read_text() for each in (folder / "memorymark-runs").iterdir()]
    texts = [*map(json.dumps, seen), *files, done.stdout, done.stderr]
    held = bool(seen) and not any(sender.secret in text for text in texts)
    said = f"{len(seen)} starts of the script: no variable with the token; {len(files)} files and the output without it"
    tried = "the token in the script's environment, in files and in the output of that run"
    yield row("L6", tried, "nowhere", held, said if held else "it is there")
    yield _environment_of_ancestors()


def _environment_of_ancestors() -> Row:
    safety = (ROOT / "docs" / "reporting.md").read_text().partition("## Safety")[2]
    sentence = next((each for each in safety.split(". ") if "/proc/PID/environ" in each), "")
    said = " ".join(sentence.split()) or "no sentence in docs/reporting.md"
    tried = "the token in /proc/PID/environ of the command that started the script, by the same user"
    expected = "a sentence in docs/reporting.md, Safety: the kernel shows it to the user whose processes these are"
    if not sentence:
        return row("L6", tried, expected, False, said)
    return decided("L6", tried, expected, f"docs/reporting.md: {said}")


def lies_in_a_lock(portal: Attacked) -> Iterator[Row]:
    """Hold a device honestly; write a dead holder into its lock as any user may; take the device as another run."""
    for what, content in (
        ("a dead process", {"pid": DEAD, "host": os.uname().nodename, "work": "x"}),
        ("no process", {}),
        ("something else", "x" * 5_000),
    ):
        with tempfile.TemporaryDirectory(prefix="memorymark-lies-") as name:
            path = Path(name) / "cpu.lock"
            command = [sys.executable, "-c", HOLD, str(path)]
            holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            try:
                assert holder.stdout is not None
                holder.stdout.readline()
                path.write_text(json.dumps(content))
                began, take = time.monotonic(), [sys.executable, "-c", TAKE, str(path)]
                done = subprocess.run(take, cwd=ROOT, capture_output=True, text=True, check=False)
                seconds, is_alive = time.monotonic() - began, holder.poll() is None
            finally:
                holder.kill()
                holder.communicate()
        said = f"{done.stdout.strip()[:160]}; the honest holder {'lives' if is_alive else 'was killed'}"
        held = is_alive and "busy" in done.stdout
        tried = f"{what} is written as the holder of a device that is held (the holder was killed)"
        yield row("L2", tried, "the device is busy, and its holder lives", held, said, seconds=seconds)


ATTACKS = (traps_and_tokens, lies_in_a_lock)
