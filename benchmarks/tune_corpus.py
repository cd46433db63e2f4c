"""Tunes the scripts of `tune_scripts/`, written as people write them, and starts each answer's two sizes once more.

Each must be exact, or refused with the expected code:

    python benchmarks/tune_corpus.py             # all of them
    python benchmarks/tune_corpus.py padded ema  # some
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.tune.launch import Watching, begin_command, start  # noqa: E402 - the checkout is put on the path first
from engine.tune.spec import TuneSpec  # noqa: E402
from engine.units import MIB  # noqa: E402

SCRIPTS = ROOT / "benchmarks" / "tune_scripts"
RESULTS = ROOT / "benchmarks" / "results" / "tune_corpus.cpu.jsonl"
EXACT, NOT_HONOURED, VARIES = "exact", "batch_size_ignored", "memory_varies"
TORCHRUN = "-m torch.distributed.run --nproc-per-node 2"
JSON_CONFIG = (
    """sh -c 'echo "{\\"train\\": {\\"batch_size\\": {batch_size}}}" > {out}/c.json """
    """&& PYTHON DIR/json_config.py {out}/c.json'"""
)
CORPUS = {
    "json_config": (16, JSON_CONFIG, EXACT),
    "accelerate": (16, "PYTHON DIR/accelerate_loop.py {batch_size}", EXACT),
    "iterable": (16, "PYTHON DIR/iterable.py {batch_size}", EXACT),
    "packed": (16, "PYTHON DIR/packed.py {batch_size}", NOT_HONOURED),
    "skips_first_steps": (16, "PYTHON DIR/mixed_precision.py {batch_size} 30", EXACT),
    "warms_up_3": (16, "PYTHON DIR/warm_up.py {batch_size} 3", EXACT),
    "warms_up_5": (16, "PYTHON DIR/warm_up.py {batch_size} 5", NOT_HONOURED),
    "halves_once": (16, "PYTHON DIR/halving.py {batch_size} keep", NOT_HONOURED),
    "halves_each": (16, "PYTHON DIR/halving.py {batch_size} again", NOT_HONOURED),
    "ignores": (16, "PYTHON DIR/ignores.py {batch_size}", NOT_HONOURED),
    "sharded": (8, f"PYTHON {TORCHRUN} DIR/sharded.py {{batch_size}}", VARIES),
    "evaluates_before": (16, "PYTHON DIR/evaluates.py {batch_size} before", EXACT),
    "evaluates_within": (16, "PYTHON DIR/evaluates.py {batch_size} within", EXACT),
    "recurrent": (16, "PYTHON DIR/recurrent.py {batch_size}", EXACT),
    "no_workers": (16, "PYTHON DIR/workers.py {batch_size} 0", EXACT),
    "forked_workers": (16, "PYTHON DIR/workers.py {batch_size} 2", EXACT),
    "spawned_workers": (16, "PYTHON DIR/workers.py {batch_size} 2 spawn", EXACT),
    "closure": (32, "PYTHON DIR/closure.py {batch_size}", VARIES),
    "gathered": (16, "PYTHON DIR/whole_data.py {batch_size} gather", EXACT),
    "sliced": (16, "PYTHON DIR/whole_data.py {batch_size} slice", EXACT),
    "one_batch": (16, "PYTHON DIR/whole_data.py {batch_size} once", EXACT),
    "averaged": (16, "PYTHON DIR/averaged.py {batch_size} ema", EXACT),
    "not_averaged": (16, "PYTHON DIR/averaged.py {batch_size}", EXACT),
    "compiled": (16, "PYTHON DIR/compiled.py {batch_size}", EXACT),
    "compiled_in_place": (16, "PYTHON DIR/compiled.py {batch_size} in_place", EXACT),
    "grows": (16, "PYTHON DIR/grows.py {batch_size}", EXACT),
    "padded": (16, "PYTHON DIR/padded.py {batch_size}", EXACT),
}
"""Memory limit in MiB, command, and what must come out."""


def main(names: list[str]) -> int:
    """Run the cases and write a line for each; 1 where one came out otherwise than expected."""
    lines = [case(name) for name in names or CORPUS]
    return int(not all(line["is_as_expected"] for line in lines))


def case(name: str) -> dict[str, Any]:
    limit_mib, template, expected = CORPUS[name]
    command = shlex.split(template.replace("PYTHON", sys.executable).replace("DIR", str(SCRIPTS)))
    began = time.monotonic()
    tune = [sys.executable, "-m", "engine", "tune", "--device", "cpu", "--json", "--memory-limit", f"{limit_mib}MiB"]
    done = subprocess.run([*tune, "--", *command], cwd=ROOT, capture_output=True, text=True, timeout=1_800)
    seconds = time.monotonic() - began
    document = json.loads(done.stdout)
    line: dict[str, Any] = {"case": name, "command": template, "limit_mib": limit_mib, "expected": expected}
    line |= {"exit_status": done.returncode, "seconds": round(seconds, 1)}
    if error := document.get("error"):
        line |= {"came_out": error["code"], "message": error["message"]}
    else:
        line |= answered(document, command, limit_mib * MIB)
    line["is_as_expected"] = line["came_out"] == expected
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return line


def answered(document: dict[str, Any], command: list[str], limit_bytes: int) -> dict[str, Any]:
    """Return the answer beside what both of its sizes take when they are started once more."""
    boundary, training = document["boundary"], document["training"]
    largest, refused = boundary["largest_batch_size"], boundary["refused_batch_size"]
    peaks = [peak_bytes(command, size, limit_bytes) for size in (largest, refused) if size]
    is_exact = boundary["certified"] and len(peaks) == 2 and (peaks[0] or 0) <= limit_bytes < (peaks[1] or 0)
    return {
        "came_out": EXACT if is_exact else f"not exact: {boundary['reason']}",
        "boundary": [largest, refused],
        "note": boundary["note"],
        "starts": len(training["starts"]),
        "micro_batches": training["micro_batches"],
        "rank_peaks_bytes": training["rank_peaks_bytes"],
        "peaks_once_more_bytes": peaks,
    }


def peak_bytes(command: list[str], size: int, limit_bytes: int) -> int | None:
    """Start the command once with a size; the peak of its worst rank, None where it did not train its steps."""
    spec = TuneSpec(tuple(command), device="cpu", memory_limit_bytes=limit_bytes)
    readings, _ = start(partial(begin_command, spec), size, Watching(memory_steps=5), seconds=600)
    memories = [memory for each in readings if each.is_done and (memory := each.memory()) is not None]
    return max((memory.peak_bytes for memory in memories), default=None)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
