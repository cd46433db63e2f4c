"""What `fit FILE` answers for public files of other tools as they lie, beside what these say about their memory.

    python benchmarks/training_files.py --clones FOLDER      FOLDER/modelscope+ms-swift/repo, ...: git directories
    python benchmarks/training_files.py --clones FOLDER --read-all     only counts what is read and why not

The files are listed in data/training_files.toml. Writes results/training_files.json.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from engine.errors import SpecError  # noqa: E402 - the checkout is put on the path first
from engine.text.units import GIB  # noqa: E402
from engine.training_files.training_file import read_training_file  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "training_files.toml"
OUT = ROOT / "benchmarks" / "results" / "training_files.json"
FOLDERS = {
    "axolotl-ai-cloud/axolotl": "examples",
    "hiyouga/LLaMA-Factory": "examples",
    "modelscope/ms-swift": "examples",
    "pytorch/torchtune": "recipes/configs",
    "huggingface/trl": "examples",
}


def git(clones: Path, repository: str, *arguments: str) -> str:
    folder = clones / repository.replace("/", "+") / "repo"
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True)
    return done.stdout.decode(errors="replace")


def fit(path: Path, gpu: str, options: Sequence[str] = ()) -> dict[str, Any]:
    command = (sys.executable, "-m", "engine", "fit", str(path), "--gpu", gpu, *options, "--json")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 2:
        return {"status": 2, "refused": done.stderr.strip().splitlines()[-1].replace(str(path), path.name)}
    document = json.loads(done.stdout)
    (made,) = document["estimates"]
    size = document["settings"]["current_batch_size"]
    (at,) = (each for each in made["at"] if each["batch_size"] == size)
    return {
        "status": done.returncode,
        "tool": document["tool"],
        "model": document["settings"]["model"],
        "batch_size": size,
        "estimated_gib": round(at["device_used_bytes"] / GIB, 2),
        "keys": {group: len(document[group]) for group in ("read", "harmless", "unknown", "not_estimated")},
        "assumed": document["assumed"],
        "change": document["change"],
    }


def judged(clones: Path, folder: Path) -> list[dict[str, Any]]:
    rows = []
    for each in tomllib.loads(DATA.read_text())["file"]:
        path = folder / each["path"].replace("/", "_")
        path.write_text(git(clones, each["repository"], "show", f"HEAD:{each['path']}"))
        commit = git(clones, each["repository"], "rev-parse", "HEAD").strip()
        row = {**each, "commit": commit, **fit(path, each["gpu"], each.get("options", ()))}
        if "published_gib" in each and "estimated_gib" in row:
            row["ratio"] = round(row["estimated_gib"] / each["published_gib"], 3)
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def read_all(clones: Path, folder: Path) -> dict[str, Any]:
    """Count what is read of every file below the tools' folders, and the reasons why not."""
    counts: dict[str, Counter[str]] = {}
    for repository, below in FOLDERS.items():
        found = counts[repository] = Counter()
        for name in git(clones, repository, "ls-tree", "-r", "--name-only", "HEAD", below).split():
            if not name.endswith((".yaml", ".yml", ".json", ".sh")):
                continue
            path = folder / Path(name).name
            path.write_text(git(clones, repository, "show", f"HEAD:{name}"))
            try:
                read_training_file(path, {})
                found["read"] += 1
            except SpecError as error:
                found[_kind_of(str(error))] += 1
    return {repository: dict(found.most_common()) for repository, found in counts.items()}


def _kind_of(refusal: str) -> str:
    text = re.sub(r"file: |line \d+: ", "", refusal)
    known = (
        "neither the catalogue",
        "has no key of a training",
        "names no model",
        "holds more than one",
        "of Megatron",
    )
    return next((each for each in known if each in text), "other")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--read-all", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = read_all(options.clones, Path(folder))
        print(json.dumps(counts, indent=1))
        if not options.read_all:
            rows = judged(options.clones, Path(folder))
            OUT.write_text(json.dumps({"read": counts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
