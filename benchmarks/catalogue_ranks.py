"""Compares models of the catalogue on real ranks, which gloo connects here, with emulated and with estimated ranks.

    python benchmarks/catalogue_ranks.py [--rounds 3] [--ranks 2] [--output FILE] [--only TEXT]

Each case is a model, a strategy and a setting. Measured: the step that `MODEL --ranks N --device cpu` trains, as real
processes, all cases in each of several rounds, because the peaks of real ranks differ. Emulated: the same step in one
process that stands in for rank 0. Estimated: the trace for a CPU. Peaks are those of the allocator's own events. Real
ranks are read twice: with all events, and without what gloo allocates inside its own ranges (`c10d::`, `gloo:`), which
NCCL does not take from PyTorch's allocator. Nothing is fitted. Needs no GPU; takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from benchmarks.emulated_ranks import events_of, peak_of  # noqa: E402
from benchmarks.estimated_ranks import BERT, LLAMA, emulated_peak, estimated_peak, named, traced_steps  # noqa: E402
from engine.settings.rank_settings import STRATEGIES  # noqa: E402
from engine.settings.spec import RunSpec  # noqa: E402

OUTPUT = ROOT / "benchmarks" / "results" / "catalogue_ranks.cpu.json"
CASES: list[tuple[int, dict[str, Any]]] = [
    (8, BERT),
    (8, {**BERT, "accumulation_steps": 3, "clip_grad_norm": True}),
    (8, LLAMA),
    (8, {**LLAMA, "gradient_checkpointing": True}),
    (4, {"model": "resnet18", "image_size": 64}),
]


def cases(ranks: int, only: str) -> Iterator[tuple[RunSpec, int]]:
    """Yield each case with its batch size."""
    for strategy in filter(None, STRATEGIES):
        for batch_size, settings in CASES:
            spec = RunSpec.from_dict({**settings, "strategy": strategy, "ranks": ranks})
            if only in str(spec):
                yield spec, batch_size


def run_rank(output: Path, options: argparse.Namespace) -> None:
    """Train every case in every round as this rank, and write its peaks: all of it, and without gloo's own."""
    dist.init_process_group("gloo")
    rounds = []
    for _ in range(options.rounds):
        peaks = []
        for spec, batch_size in cases(options.ranks, options.only):
            dist.barrier()
            held, traced = traced_steps(spec, batch_size)
            assert traced.profiler is not None
            assert traced.profiler.kineto_results is not None
            events = sorted(events_of(traced.profiler.kineto_results.experimental_event_tree()))
            peaks.append((peak_of(events, held), peak_of([each for each in events if not each[3]], held)))
        rounds.append(peaks)
    output.write_text(json.dumps(rounds))
    dist.barrier()
    dist.destroy_process_group()


def measured(options: argparse.Namespace) -> list[list[list[tuple[int, int]]]]:
    """Start real ranks; the peaks of each, by round and case."""
    command = [sys.executable, __file__, "--rounds", str(options.rounds), "--ranks", str(options.ranks)]
    common = {"WORLD_SIZE": str(options.ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29613"}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{rank}.json" for rank in range(options.ranks)]
        processes = [
            subprocess.Popen(
                [*command, "--only", options.only, "--as-rank", str(file)],
                env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            )
            for rank, file in enumerate(files)
        ]
        statuses = [process.wait() for process in processes]
        if any(statuses):
            raise RuntimeError("a rank ended with an error")
        return [json.loads(file.read_text()) for file in files]


def compare(number: int, spec: RunSpec, batch_size: int, ranks: Any) -> dict[str, Any]:
    """Return one row. What is compared is the worst rank of the round that took least, without gloo's own."""
    rounds = range(len(ranks[0]))
    real, without = ([max(rank[r][number][kind] for rank in ranks) for r in rounds] for kind in (0, 1))
    emulated, estimated = emulated_peak(spec, batch_size), estimated_peak(spec, batch_size)
    return {
        "settings": named(spec),
        "batch_size": batch_size,
        "measured_bytes": real,
        "measured_without_staging_bytes": without,
        "emulated_bytes": emulated,
        "estimated_bytes": estimated,
        "emulated_difference": round(emulated / min(without) - 1, 6),
        "estimated_difference": round(estimated / min(without) - 1, 6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--only", default="", help="only cases whose settings contain this text")
    parser.add_argument("--as-rank", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.as_rank is not None:
        run_rank(options.as_rank, options)
        return
    start, rows = time.monotonic(), []
    ranks = measured(options)
    for number, (spec, batch_size) in enumerate(cases(options.ranks, options.only)):
        rows.append(compare(number, spec, batch_size, ranks))
        print(spec.strategy, batch_size, rows[-1]["emulated_difference"], rows[-1]["estimated_difference"], flush=True)
    worst = {kind: max((abs(r[f"{kind}_difference"]) for r in rows), default=0) for kind in ("emulated", "estimated")}
    facts = {"torch": torch.__version__, "ranks": options.ranks, "rounds": options.rounds, "worst_difference": worst}
    document = {**facts, "seconds": round(time.monotonic() - start), "rows": rows}
    options.output.write_text(json.dumps(document, indent=1) + "\n")
    print(worst)


if __name__ == "__main__":
    main()
