"""The three classic models on this machine's best device: what MemoryMark answers, as JSON.

    python benchmarks/models_on_device.py [--device cuda:0] [--models bert gpt2 resnet] [--output FOLDER]

Two settings each: forward and backward only (eval mode, no optimizer, fp32), and AdamW in bf16. Writes one
file per model and setting, named after the device, with the whole result: certificate, probes, environment.
No such file is committed yet: no GPU was at hand.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from engine import EngineError, RunSpec, measure
from engine.console import Console, details, summary

SETTINGS = {
    "forward_backward": {"mode": "eval", "optimizer": "none", "precision": "fp32"},
    "adamw_bf16": {"mode": "train", "optimizer": "adamw", "precision": "bf16"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--models", nargs="+", default=["bert", "gpt2", "resnet"])
    parser.add_argument("--memory-limit", help="such as 24GiB; the whole device otherwise")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    limit = {"memory_limit_bytes": options.memory_limit} if options.memory_limit else {}
    for model in options.models:
        for name, settings in SETTINGS.items():
            spec = RunSpec.from_dict({"model": model, "device": options.device, **settings, **limit})
            run(spec, name, options.output)


def run(spec: RunSpec, name: str, folder: Path) -> None:
    """Measure one and keep it; an engine error ends this one only."""
    try:
        result = measure(spec, Console(sys.stdout))
    except EngineError as error:
        print(f"{spec.model} {name}: {error}")
        return
    device = re.sub(r"[^a-z0-9]+", "-", result.device.name.lower()).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{spec.model}.{name}.{device}.json").write_text(json.dumps(result.to_dict(), indent=1) + "\n")
    print(f"{details(result)}\n{summary(result)}")


if __name__ == "__main__":
    main()
