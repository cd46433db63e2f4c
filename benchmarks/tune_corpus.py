"""Tunes training scripts written as people write them, and starts each answer's two sizes once more.

Each must be exact, or refused with the expected code:

    pip install -r requirements.txt -r benchmarks/requirements.txt
    python benchmarks/tune_corpus.py                  # all of them, written to a new file of results
    python benchmarks/tune_corpus.py padded averaged  # some, added to it
    python benchmarks/tune_corpus.py --summary        # counts of the results that are there
    python benchmarks/tune_corpus.py --brute-force    # exact answers against every size near them, in another file

An answer is exact where a start of its largest size stays within the limit and one of the next size does not, each
measured once more after the search had ended. By brute force it is where all of the sizes around it, and some far
below and above, which no search has chosen, stay within the limit up to it and exceed the limit beyond it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.errors import CommandUntunable  # noqa: E402 - the checkout is put on the path first
from engine.facts.result import Outcome  # noqa: E402
from engine.text.units import MIB  # noqa: E402
from engine.trainings.script.judge.evidence import WatchedStart  # noqa: E402
from engine.trainings.script.notes.progress import Ended  # noqa: E402
from engine.trainings.script.notes.reading import Reading  # noqa: E402
from engine.trainings.script.spec import TuneSpec  # noqa: E402
from engine.trainings.script.start.command import begin_command  # noqa: E402
from engine.trainings.script.start.launch import Watching, start  # noqa: E402

SCRIPTS, TESTED = ROOT / "benchmarks" / "tune_scripts", ROOT / "tests" / "engine" / "trainings" / "script" / "scripts"
RESULTS = ROOT / "benchmarks" / "results" / "tune_corpus.cpu.jsonl"
BRUTE_FORCE = RESULTS.with_name("tune_corpus_brute_force.cpu.jsonl")
NEIGHBOURS, STEPS, LATER = 4, 5, 200
EXACT, OPEN, NOT_HONOURED = "exact", "not certified", "batch_size_ignored"
EITHER = f"{EXACT} or {OPEN}"
"""As the starts of a script without a seed agree, or do not."""
TORCHRUN = "-m torch.distributed.run --nproc-per-node 2"
TRAINER = "--output_dir {out} --use_cpu true --report_to none --disable_tqdm true --num_train_epochs 100"
PICTURES, SEQUENCES = "PYTHON DIR/picture_loops.py", "PYTHON DIR/sequence_loops.py"
TOKENS = ("--sizes", "tokens", "--current-batch-size", "512")
TRAINERS = "PYTHON DIR/trainers_of_2026.py"
JSON_CONFIG = (
    """sh -c 'echo "{\\"train\\": {\\"batch_size\\": {batch_size}}}" > {out}/c.json """
    """&& PYTHON DIR/json_config.py {out}/c.json'"""
)


@dataclass(frozen=True, slots=True)
class Case:
    """A command to be tuned, how the batch size gets in, and what must come out."""

    command: str
    expected: str = EXACT
    limit_mib: int = 16
    batch: str | None = None
    """The value of `--batch`; left out where the command holds the batch size."""
    options: tuple[str, ...] = ()
    """More of `tune`."""

    def arguments(self) -> list[str]:
        names = {"PYTHON": sys.executable, "DIR": str(SCRIPTS), "TESTED": str(TESTED)}
        parts = shlex.split(self.command)
        for name, value in names.items():
            parts = [part.replace(name, value) for part in parts]
        return parts


CORPUS = {
    "argparse": Case("PYTHON TESTED/plain.py --batch-size {batch_size}", limit_mib=24),
    "readme": Case("PYTHON TESTED/ten_lines.py {batch_size}", limit_mib=96),
    "hard_coded": Case("PYTHON TESTED/hard_coded.py", limit_mib=4, batch="dataloader"),
    "one_line": Case("PYTHON TESTED/one_line.py", limit_mib=8, batch="steps"),
    "json_config": Case(JSON_CONFIG),
    "hf_trainer": Case("PYTHON TESTED/trainer.py {out}", batch="hf"),
    "accelerate": Case("PYTHON DIR/accelerate_loop.py {batch_size}"),
    "lightning": Case("PYTHON DIR/lightning_module.py {batch_size}"),
    "gan": Case("PYTHON TESTED/gan.py", batch="env"),
    "data_parallel": Case(f"PYTHON {TORCHRUN} TESTED/ranks.py --batch-size {{batch_size}}", limit_mib=8),
    "sharded": Case(f"PYTHON {TORCHRUN} DIR/sharded.py {{batch_size}}", limit_mib=8),
    "iterable": Case("PYTHON DIR/iterable.py {batch_size}"),
    "padded": Case("PYTHON DIR/padded.py {batch_size}"),
    "packed": Case("PYTHON DIR/packed.py {batch_size}", NOT_HONOURED),
    "skips_first_steps": Case("PYTHON DIR/mixed_precision.py {batch_size} 30"),
    "warms_up_3": Case("PYTHON DIR/warm_up.py {batch_size} 3"),
    "warms_up_5": Case("PYTHON DIR/warm_up.py {batch_size} 5"),
    "halves_once": Case("PYTHON DIR/halving.py {batch_size} keep", NOT_HONOURED),
    "halves_each": Case("PYTHON DIR/halving.py {batch_size} again", NOT_HONOURED),
    "ignores": Case("PYTHON DIR/ignores.py {batch_size}", NOT_HONOURED),
    "evaluates_before": Case("PYTHON DIR/evaluates.py {batch_size} before"),
    "evaluates_within": Case("PYTHON DIR/evaluates.py {batch_size} within"),
    "recurrent": Case("PYTHON DIR/recurrent.py {batch_size}"),
    "no_workers": Case("PYTHON DIR/workers.py {batch_size} 0"),
    "forked_workers": Case("PYTHON DIR/workers.py {batch_size} 2"),
    "spawned_workers": Case("PYTHON DIR/workers.py {batch_size} 2 spawn"),
    "closure": Case("PYTHON DIR/closure.py {batch_size}", limit_mib=32),
    "gathered": Case("PYTHON DIR/whole_data.py {batch_size} gather"),
    "sliced": Case("PYTHON DIR/whole_data.py {batch_size} slice"),
    "one_batch": Case("PYTHON DIR/whole_data.py {batch_size} once"),
    "averaged": Case("PYTHON DIR/averaged.py {batch_size} ema"),
    "not_averaged": Case("PYTHON DIR/averaged.py {batch_size}"),
    "compiled": Case("PYTHON DIR/compiled.py {batch_size}"),
    "compiled_in_place": Case("PYTHON DIR/compiled.py {batch_size} in_place"),
    "grows": Case("PYTHON DIR/grows.py {batch_size}"),
    # with datasets, evaluate, trl, sentence-transformers and accelerate of benchmarks/requirements.txt
    "hf_causal_lm": Case(f"PYTHON DIR/hf_causal_lm.py {TRAINER} --per_device_train_batch_size {{batch_size}}"),
    "trl_sft": Case(f"PYTHON DIR/trl_sft.py {TRAINER}", limit_mib=96, batch="hf"),
    "trl_dpo": Case(f"PYTHON DIR/trl_dpo.py {TRAINER}", batch="hf"),
    "sentence_pairs": Case("PYTHON DIR/sentence_pairs.py {batch_size} {out}"),
    "accelerate_nlp": Case("PYTHON DIR/accelerate_nlp.py --cpu {out}", batch="dataloader"),
    "sft_packed": Case(f"PYTHON DIR/trl_sft.py {TRAINER} --packing true --max_length 64", limit_mib=64, batch="hf"),
    "multiscale": Case(f"{PICTURES} multiscale --batch-size {{batch_size}}", EITHER),
    "multiscale_soaked": Case(f"{PICTURES} multiscale --batch-size {{batch_size}}", options=("--soak-steps", "40")),
    "progressive": Case(f"{PICTURES} progressive --batch-size {{batch_size}}"),
    "segmentation": Case(f"{PICTURES} segmentation --batch-size {{batch_size}}"),
    "deep_supervision": Case(f"{PICTURES} deep_supervision --batch-size {{batch_size}}"),
    "moco": Case(f"{PICTURES} moco --batch-size {{batch_size}}", limit_mib=24),
    "moco_divides": Case(f"{PICTURES} moco_divides --batch-size {{batch_size}}", limit_mib=24),
    "token_budget": Case(
        f"{SEQUENCES} token_budget --max-tokens {{batch_size}}",
        options=("--sizes", "tokens", "--current-batch-size", "512"),
    ),
    "experts": Case(f"{SEQUENCES} experts --batch-size {{batch_size}}"),
    "checkpointed": Case(f"{SEQUENCES} checkpointed --batch-size {{batch_size}} --accumulate 4"),
    "splats": Case("PYTHON DIR/other_loops.py splats {batch_size}", limit_mib=4),
    "splats_soaked": Case(
        "PYTHON DIR/other_loops.py splats {batch_size}", limit_mib=4, options=("--soak-steps", "160")
    ),
    "minibatches": Case("PYTHON DIR/other_loops.py minibatches {batch_size}", limit_mib=8),
    "environments": Case("PYTHON DIR/other_loops.py environments {batch_size}", limit_mib=8),
    "federated": Case("PYTHON DIR/other_loops.py federated {batch_size}", limit_mib=4),
    "ensemble": Case("PYTHON DIR/other_loops.py ensemble {batch_size}", limit_mib=8),
    "graphs": Case("PYTHON DIR/other_loops.py graphs {batch_size}", limit_mib=8),
    "diffusion_buckets": Case("PYTHON DIR/diffusion_buckets.py --train_batch_size {batch_size}"),
    "grpo": Case(f"{TRAINERS} grpo {TRAINER} --num_generations 4 --max_completion_length 16", batch="hf", limit_mib=8),
    "lora": Case(f"{TRAINERS} lora {TRAINER} --gradient_accumulation_steps 2", batch="hf"),
    "whisper": Case(f"{TRAINERS} whisper {TRAINER}", batch="hf"),
    "wav2vec2": Case(f"{TRAINERS} wav2vec2 {TRAINER}", batch="hf", limit_mib=24),
}


def main(names: list[str]) -> int:
    """Run the cases and write a line for each; 1 where one came out otherwise than expected."""
    if names[:1] == ["--brute-force"]:
        exact = [line for line in results() if line["came_out"] == EXACT and (not names[1:] or line["case"] in names)]
        return int(False in [brute_force(line) for line in exact])
    if names != ["--summary"]:
        if not names:
            RESULTS.unlink(missing_ok=True)
        for name in names or CORPUS:
            case(name)
    lines = results()
    print(json.dumps(summary(lines), indent=1))
    return int(not all(line["is_as_expected"] for line in lines))


def results(file: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the newest line of each case."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return list({line["case"]: line for line in lines}.values())


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    exact = [line for line in lines if line["came_out"] == EXACT]
    refused = [line for line in lines if line["exit_status"] == 9]
    wrong = [line["case"] for line in lines if not line["is_as_expected"]]
    tried = results(BRUTE_FORCE)
    searched = [line["search_starts"] for line in exact]
    all_starts = [line["starts"] for line in exact]
    return {
        "scripts": len(lines),
        "exact": len(exact),
        "tried_by_brute_force": len(tried),
        "otherwise_by_brute_force": [line["case"] for line in tried if not line["is_boundary"]],
        "over_the_limit_in_200_steps": [line["case"] for line in exact if takes_more_later(line)],
        "refused_with_the_expected_reason": sum(line["is_as_expected"] for line in refused),
        "not_as_expected": wrong,
        "starts_to_the_certificate": {"median": median(searched), "worst": max(searched)},
        "starts_with_the_largest_with_reserve": {"median": median(all_starts), "worst": max(all_starts)},
    }


def takes_more_later(line: dict[str, Any]) -> bool:
    """Whether the largest size exceeded the limit in steps after those that its certificate names."""
    return (line.get("peak_of_200_steps_bytes") or 0) > line["limit_mib"] * MIB


def case(name: str) -> dict[str, Any]:
    """Tune one script and write what came out."""
    this = CORPUS[name]
    began = time.monotonic()
    tune = [sys.executable, "-m", "engine", "tune", "--device", "cpu", "--json", "--no-compare-speed", "--memory-limit"]
    options = [f"{this.limit_mib}MiB", *(["--batch", this.batch] if this.batch else []), *this.options]
    done = subprocess.run(
        [*tune, *options, "--", *this.arguments()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1_800,
    )
    seconds = time.monotonic() - began
    document = json.loads(done.stdout)
    line: dict[str, Any] = {"case": name, "command": this.command, "batch": this.batch, "limit_mib": this.limit_mib}
    line |= {"expected": this.expected, "exit_status": done.returncode, "seconds": round(seconds, 1)}
    if error := document.get("error"):
        line |= {"came_out": error["code"], "message": error["message"]}
    else:
        line |= answered(document, this)
    line["is_as_expected"] = line["came_out"] in this.expected.split(" or ")
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return line


def answered(document: dict[str, Any], this: Case) -> dict[str, Any]:
    """Return the answer beside what both of its sizes take when they are started once more."""
    boundary, training, limit_bytes = document["boundary"], document["training"], this.limit_mib * MIB
    largest, refused = boundary["largest_batch_size"], boundary["refused_batch_size"]
    peaks = [peak_bytes(this, size, max(boundary["soak_steps"], STEPS)) for size in (largest, refused) if size]
    is_exact = boundary["certified"] and len(peaks) == 2 and (peaks[0] or 0) <= limit_bytes < (peaks[1] or 0)
    probes = document["probes"]
    return {
        "came_out": EXACT if is_exact else "wrong" if boundary["certified"] else OPEN,
        "boundary": [largest, refused],
        "note": boundary["note"],
        "steps": boundary["soak_steps"],
        "sizes": [f"{p['batch_size']}{'' if p['outcome'] == 'fits' else 'x'}" for p in probes],
        "starts": len(training["starts"]),
        "search_starts": sum(p["purpose"] != "curve" for p in probes),
        "micro_batches": training["micro_batches"],
        "rank_peaks_bytes": training["rank_peaks_bytes"],
        "peaks_once_more_bytes": peaks,
        "peak_of_200_steps_bytes": peak_bytes(this, largest, LATER) if largest else None,
    }


def peak_bytes(this: Case, size: int, steps: int) -> int | None:
    """Start the command once with a size; the peak of its worst rank, None where it made no step.

    It needs no rows to be found in the batches: an answer may be tokens, or environments of many rows each.
    """
    readings, _ = begun(this, size, steps)
    return max((memory.peak_bytes for each in readings if (memory := each.memory()) is not None), default=None)


def begun(this: Case, size: int, steps: int = STEPS) -> tuple[list[Reading], Ended]:
    limit_bytes, batch = this.limit_mib * MIB, this.batch or "template"
    spec = TuneSpec(tuple(this.arguments()), device="cpu", memory_limit_bytes=limit_bytes, batch=batch)
    watching = Watching(memory_steps=steps, timed_steps=0, least_steps=steps)
    return start(partial(begin_command, spec), size, watching, seconds=600)


def started(this: Case, size: int, smaller: int = 0) -> tuple[str, int | None]:
    """Start the command once with a size; what is judged of it, and the peak of its worst rank.

    `smaller` is a size that trained: it distinguishes data with no more rows from a size that is ignored.
    """
    limit_bytes, batch, honoured = this.limit_mib * MIB, this.batch or "template", {smaller} - {0}
    try:
        watched = WatchedStart(*begun(this, size), size, limit_bytes=limit_bytes, batch=batch, honoured=honoured)
        probe = watched.evidence().probe
    except CommandUntunable as reason:
        return reason.code, None
    return str(probe.outcome), probe.peak_allocated_bytes


def brute_force(line: dict[str, Any]) -> bool:
    """Start every size around an answer and some far from it; whether the limit lies where the answer says.

    Beyond the last row of the data nothing is trained, which is no contradiction.
    """
    this, largest = CORPUS[line["case"]], line["boundary"][0]
    near = range(max(largest - NEIGHBOURS, 1), largest + NEIGHBOURS + 1)
    sizes = sorted({largest // 4, largest // 2, 3 * largest // 4, *near, 2 * largest} - {0})
    began = time.monotonic()
    found = {size: started(this, size, largest if size > largest else 0) for size in sizes}
    wrong = [size for size in sizes if not is_where_it_should_be(found[size][0], size, largest)]
    answer = {"case": line["case"], "limit_mib": this.limit_mib, "largest": largest, "is_boundary": not wrong}
    answer |= {"wrong": wrong, "sizes": found, "seconds": round(time.monotonic() - began, 1)}
    with BRUTE_FORCE.open("a") as file:
        file.write(json.dumps(answer) + "\n")
    print(json.dumps(answer), flush=True)
    return not wrong


def is_where_it_should_be(outcome: str, size: int, largest: int) -> bool:
    """Whether a size fits up to the largest and is out of memory beyond it, as far as the data has rows."""
    if size <= largest:
        return outcome == Outcome.FITS
    return outcome in ({Outcome.OUT_OF_MEMORY, Outcome.SIZE_LIMIT} if size > largest + 1 else {Outcome.OUT_OF_MEMORY})


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ["PYTHONPATH"] = str(ROOT)  # some scripts import `steps` or a helper of the engine
    sys.exit(main(sys.argv[1:]))
