"""How long an estimate takes from the first start on, beside tools that answer the same question without torch.

    scripts/build-wheel /tmp/wheel && python -m venv /tmp/tool && /tmp/tool/bin/pip install /tmp/wheel/*.whl
    python -m venv /tmp/others && /tmp/others/bin/pip install torch-preflight fitcheck-llm
    python benchmarks/estimate_seconds.py --program /tmp/tool/bin/memorymark --others /tmp/others/bin

Ten questions, each five times in a process of its own; `first` is the first start after the files were dropped from the
cache of traces, the others read what it kept. fitcheck reads a model's config.json from the hub: offline it is given
one in the form of the hub's cache. Writes results/estimate_seconds.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benchmarks" / "results" / "estimate_seconds.json"
BF16 = ("--precision", "bf16")
CHECKPOINTED = (*BF16, "--gradient-checkpointing")
LORA = (*CHECKPOINTED, "--lora-rank", "16")
QUESTIONS: dict[str, tuple[str, ...]] = {
    "bert on one GPU": ("bert", "--gpu", "a10"),
    "bert on all GPUs": ("bert", "--gpu", "all"),
    "bert in bf16 on all GPUs": ("bert", "--gpu", "all", *BF16),
    "resnet on all GPUs": ("resnet", "--gpu", "all"),
    "vit_b_16 on one GPU": ("vit_b_16", "--gpu", "t4"),
    "gpt2-lm, batch 40": ("gpt2-lm", "--gpu", "a10", "--batch-size", "40"),
    "qwen3-4b, checkpointed": ("qwen3-4b", "--gpu", "a100-80gb", *CHECKPOINTED),
    "llama-3.2-1b with LoRA": ("llama-3.2-1b", "--gpu", "rtx-4090", *LORA),
    "llama-3.1-8b with LoRA on 4 bits": ("llama-3.1-8b", "--gpu", "all", *LORA, "--load-in-4bit"),
    "llama-3.1-8b, checkpointed, on all GPUs": ("llama-3.1-8b", "--gpu", "all", *CHECKPOINTED),
}
PREFLIGHT = {
    "bert on one GPU": "bert-base-uncased --dtype fp32 --gpu a10g",
    "gpt2-lm, batch 40": "gpt2 --dtype fp32 --gpu a10g --batch-size 40",
    "llama-3.1-8b, checkpointed, on all GPUs": "llama-3-8b --dtype amp --gpu a100-80gb --checkpointing",
}
FITCHECK = {
    "llama-3.2-1b with LoRA": "--gpu 4090 --lora-r 16 --seq-len 512 --batch-size 16 --grad-checkpoint",
    "qwen3-4b, checkpointed": "--gpu a100-80 --no-lora --seq-len 512 --batch-size 16 --grad-checkpoint",
}
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
TIMES = 5


def seconds_of(command: list[str], environment: dict[str, str]) -> tuple[float, int]:
    before = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    return round(time.perf_counter() - before, 3), done.returncode


def row(what: str, tool: str, command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    taken = [seconds_of(command, environment) for _ in range(TIMES)]
    first, *later = [each for each, _ in taken]
    found = {"what": what, "tool": tool, "first_seconds": first, "median_seconds": statistics.median(later)}
    found |= {"least_seconds": min(later), "most_seconds": max(later), "status": taken[0][1]}
    print(json.dumps(found), flush=True)
    return found


def hub_with(config: dict[str, Any], folder: Path) -> dict[str, str]:
    """Make a cache of the hub with one model, and return the variables by which it is found offline."""
    model = folder / "models--some--model"
    (model / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (model / "snapshots" / ("0" * 40) / "config.json").write_text(json.dumps(config))
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("0" * 40)
    return {"HF_HUB_CACHE": str(folder), "HF_HUB_OFFLINE": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--others", type=Path)
    parser.add_argument("--output", type=Path, default=OUT)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for what, question in QUESTIONS.items():
            environment = os.environ | {"XDG_CACHE_HOME": str(Path(folder) / "cache")}
            rows.append(row(what, "memorymark", [options.program, "estimate", *question, "--json"], environment))
        if options.others:
            offline = os.environ | hub_with(CONFIG, Path(folder) / "hub")
            for what, question in PREFLIGHT.items():
                command = [str(options.others / "torch-preflight"), "estimate", "--model", *question.split()]
                rows.append(row(what, "torch-preflight", command, offline))
            for what, question in FITCHECK.items():
                command = [str(options.others / "fitcheck"), "some/model", *question.split()]
                rows.append(row(what, "fitcheck", command, offline))
    machine = {"platform": platform.platform(), "cores": os.cpu_count(), "python": sys.version.split()[0]}
    options.output.write_text(json.dumps({"machine": machine, "times": TIMES, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
