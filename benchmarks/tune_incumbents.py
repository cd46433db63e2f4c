"""Runs other tools that find a batch size on the scripts of `tune_corpus.py` that each of them can do.

    pip install -r requirements.txt -r benchmarks/requirements.txt
    python benchmarks/tune_incumbents.py                    # all that have no result yet
    python benchmarks/tune_incumbents.py accelerate padded  # one, in this process
    python benchmarks/tune_incumbents.py --table            # the results beside those of tune_corpus.py

`budget.py` refuses in each process what a card of that size would refuse, by the accounting that `tune` uses.

    accelerate          `find_executable_batch_size`, from 4,096; the function it repeats is the whole script
    hugging_face        `auto_find_batch_size` of the Trainer, from 4,096
    lightning_power     Lightning's `BatchSizeFinder`, mode "power"
    lightning_binsearch the same, mode "binsearch"

DeepSpeed's autotuner is left out: it needs a script written for DeepSpeed, and on a CPU it takes the whole memory of
the host for the card's (`autotuning/autotuner.py`, `cpu_accelerator.py`), so that no budget can be set.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.budget import STEPS, Budget, Enough
from benchmarks.tune_corpus import CORPUS, RESULTS, SCRIPTS, Case, results
from engine.text.units import MIB

OUTPUT = RESULTS.with_name("tune_incumbents.cpu.jsonl")
FIRST = 4_096  # these tools come down from a size that a person gives
LIGHTNING = {"lightning_power": "power", "lightning_binsearch": "binsearch"}
STARTS_SMALLER = ("warms_up_5",)  # its first 5 steps, after which an attempt ends here, have another size


def main(arguments: list[str]) -> int:
    """Run one tool on one script, or all in processes of their own."""
    if arguments == ["--table"]:
        print("\n".join(table()))
        return 0
    if arguments:
        print(json.dumps(found_by(*arguments)))
        return 0
    done = {(line["tool"], line["case"]) for line in found()}
    for tool, name in pairs():
        if (tool, name) in done:
            continue
        line = {"tool": tool, "case": name, **in_process(tool, name)}
        with OUTPUT.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
    return 0


def pairs() -> list[tuple[str, str]]:
    """Return each tool with each script that it can do."""
    own = [("hugging_face", "hf_trainer"), *((tool, "lightning") for tool in LIGHTNING)]
    return [*own, *(("accelerate", name) for name, case in CORPUS.items() if can_be_decorated(name, case))]


def can_be_decorated(name: str, case: Case) -> bool:
    """Whether the whole script can be the function of a batch size that accelerate's decorator is put around.

    Several processes would each search alone, and a size that comes from elsewhere is no argument.
    """
    is_alone = "torch.distributed.run" not in case.command and case.command.startswith("PYTHON")
    return is_alone and case.batch in (None, "env") and name not in STARTS_SMALLER


def found() -> list[dict[str, Any]]:
    """Return what the tools found so far."""
    return [json.loads(line) for line in OUTPUT.read_text().splitlines()] if OUTPUT.exists() else []


def table() -> list[str]:
    """Return the rows of a Markdown table: what each tool found beside the exact size, and what that took."""
    truth = {line["case"]: line for line in results()}
    rows = [
        "| script | exact | tool | found | of the exact | attempts | refused |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for line in found():
        ours = truth.get(line["case"], {})
        exact = ours.get("boundary", [None])[0]
        share = f"{line['found'] / exact:.0%}" if exact and line["found"] else ""
        cells = (line["case"], exact or ours.get("came_out"), line["tool"], line["found"] or line.get("problem"), share)
        rows.append("| " + " | ".join(map(str, (*cells, line.get("attempts"), line.get("refused")))) + " |")
    return rows


def in_process(tool: str, name: str) -> dict[str, Any]:
    began = time.monotonic()
    done = subprocess.run([sys.executable, __file__, tool, name], capture_output=True, text=True, timeout=1_800)
    seconds = round(time.monotonic() - began, 1)
    if done.returncode:
        return {"found": None, "problem": done.stderr.strip().splitlines()[-1][:300], "seconds": seconds}
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "seconds": seconds}


def found_by(tool: str, name: str) -> dict[str, Any]:
    """Have a tool find a size in this process; what it found, and what that took."""
    import torch

    case = CORPUS[name]
    budget = Budget(case.limit_mib * MIB, steps=None if tool in LIGHTNING else STEPS)
    budget.arm(torch)
    sys.path.insert(0, str(SCRIPTS))
    if tool in LIGHTNING:
        found = by_lightning(budget, LIGHTNING[tool])
    else:
        found = by_accelerate(budget, case) if tool == "accelerate" else by_trainer(budget, case)
    return {"found": found, "attempts": budget.attempts, "refused": budget.refused, "steps": budget.all_steps}


def by_accelerate(budget: Budget, case: Case) -> int:
    """Repeat the whole script as the function that accelerate's decorator is put around."""
    from accelerate.utils import find_executable_batch_size

    @find_executable_batch_size(starting_batch_size=FIRST)
    def training(batch_size: int) -> int:
        gc.collect()
        budget.begin_attempt()
        run_script(case, batch_size)
        return batch_size

    return int(training())


def run_script(case: Case, batch_size: int) -> None:
    """Run a script in this process until it has trained its steps."""
    os.environ["MEMORYMARK_BATCH_SIZE"] = str(batch_size)
    with tempfile.TemporaryDirectory() as folder, suppress(Enough):
        values = {"{batch_size}": str(batch_size), "{out}": folder}
        sys.argv = [values.get(part, part) for part in case.arguments()[1:]]
        runpy.run_path(sys.argv[0], run_name="__main__")


def by_trainer(budget: Budget, case: Case) -> int:
    """Run the Trainer's script with `auto_find_batch_size`."""
    from engine.measurement.torchvision_schemas import import_torchvision

    import_torchvision()  # beside the CPU build of torch its compiled part does not load
    from transformers import Trainer, training_args

    check, train = training_args.TrainingArguments.__post_init__, Trainer._inner_training_loop

    def checked(arguments: Any) -> None:
        arguments.auto_find_batch_size, arguments.per_device_train_batch_size = True, FIRST
        check(arguments)

    def attempt(*arguments: Any, **options: Any) -> Any:
        budget.begin_attempt()
        return train(*arguments, **options)

    training_args.TrainingArguments.__post_init__ = checked
    Trainer._inner_training_loop = attempt
    run_script(case, FIRST)
    return budget.batch_size()


def by_lightning(budget: Budget, mode: str) -> int:
    """Have Lightning's tuner scale the batch size of the module of the script."""
    import logging

    from lightning_module import Classifier, trainer

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    from lightning.pytorch.tuner import Tuner

    class Counted(Classifier):
        def on_train_start(self) -> None:
            budget.begin_attempt()

    return int(Tuner(trainer(max_epochs=1)).scale_batch_size(Counted(2), mode=mode) or 0)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
