"""What a newcomer's first runs answer, beside how many busy cores, how long they take, and whether it is true.

    python benchmarks/first_answers.py --load idle [--times 5] [--only demo measure tune race python form]
    python benchmarks/first_answers.py --load idle --only padded "model resnet18"   scripts, models
    python benchmarks/first_answers.py --truth        on a quiet machine: what was recommended beside today's
    python benchmarks/first_answers.py --summary

Each run is one JSON line: `said` is its headline as printed. The truth are 200 steps of each size in plain loops of
`plain_steps.py`, in eight starts that take turns, on the same day: another machine has other ratios. `first_claims.py`
compares. "Keep" that names no size has no pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.first_claims import claimed, headline_of, is_true  # noqa: E402 - the checkout is put on the path first
from benchmarks.plain_steps import ratios  # noqa: E402

OUT = ROOT / "benchmarks" / "results" / "first_answers.cpu.jsonl"
SCRIPT = ROOT / "tests" / "engine" / "trainings" / "script" / "scripts" / "ten_lines.py"
LOADS, TODAY = {"idle": 0, "one": 1, "both": 2}, 16
TODAYS_DATE = time.strftime("%Y-%m-%d")
ENGINE, LIMIT = (sys.executable, "-m", "engine"), ("--memory-limit", "256MiB")
TUNE, MODEL = (*ENGINE, "tune", "--device", "cpu"), "bert-tiny"
COMMANDS = {
    "demo": (*ENGINE, "demo"),
    "measure": (*ENGINE, "measure", MODEL, "cpu", *LIMIT),
    "tune": (*TUNE, *LIMIT, "--", sys.executable, "train.py", "{batch_size}"),
    "race": (*TUNE, "--faster", "--", sys.executable, "train.py", str(TODAY)),
    "python": (sys.executable, "snippet.py"),
    "form": (),
}
TRAINING = {"demo": "demo", **dict.fromkeys(("tune", "race"), SCRIPT.relative_to(ROOT).as_posix())}
SCRIPTS = ROOT / "benchmarks" / "tune_scripts"
OTHERS = (
    *("accelerate_loop", "lightning_module", "iterable", "padded", "recurrent", "averaged", "closure", "grows"),
    *("tokenized_rows", "python_transform"),
)
"""Scripts of the corpus, beside what a newcomer runs first."""
MODELS = {"bert-tiny": "256MiB", "resnet18": "512MiB", "efficientnet-b0": "512MiB", "mobilenet-v3-large": "512MiB"}
COMMANDS |= {
    name: (*TUNE, "--memory-limit", "32MiB", "--", sys.executable, str(SCRIPTS / f"{name}.py"), "{batch_size}")
    for name in OTHERS
}
COMMANDS |= {f"model {name}": (*ENGINE, "measure", name, "cpu", "--memory-limit", of) for name, of in MODELS.items()}
TRAINING |= {name: (SCRIPTS / f"{name}.py").relative_to(ROOT).as_posix() for name in OTHERS}
TRAINING |= {f"model {name}": name for name in MODELS}
FIRST_RUNS = ("demo", "measure", "tune", "race", "python", "form")
CHANGES = {
    "Fused optimizer": "fused",
    "Foreach optimizer": "foreach",
    "Loader workers": "workers",
    "bf16 autocast": "bf16",
}


@contextmanager
def busy(cores: int) -> Iterator[None]:
    """Keep cores busy by processes that are no relatives of what is measured."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        yield
    finally:
        for each in loops:
            each.kill()
            each.wait()


def run(what: str, folder: Path) -> tuple[float, int, str]:
    """Run one thing to its end: seconds, exit status, and all that it printed."""
    if what == "form":
        return fill_the_form(folder)
    (folder / "train.py").write_text(SCRIPT.read_text())
    snippet = (ROOT / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    (folder / "snippet.py").write_text(snippet.replace("from memorymark", "from engine.public"))
    here = {"PYTHONPATH": str(ROOT), "MEMORYMARK_DATA_DIR": str(folder / "data"), "NO_COLOR": "1", "COLUMNS": "200"}
    began = time.monotonic()
    ended = subprocess.run(COMMANDS[what], cwd=folder, env={**os.environ, **here}, capture_output=True, text=True)
    return time.monotonic() - began, ended.returncode, ended.stdout + ended.stderr


def fill_the_form(folder: Path) -> tuple[float, int, str]:
    """Start the run that the form offers in a portal of its own, and read its page."""
    import httpx

    from docs.screenshots import USER, served, wait_for

    with served(folder) as portal, httpx.Client(base_url=portal.address, follow_redirects=True) as person:
        person.get("/login/")
        token = {"csrfmiddlewaretoken": person.cookies["csrftoken"]}
        person.post("/login/", data={"username": USER, "password": portal.password, **token})
        began = time.monotonic()
        started = portal.post("runs/", {"model": MODEL, "device": "cpu", "memory_limit_bytes": "512MiB"})
        wait_for(portal, [started])
        seconds, ended = time.monotonic() - began, portal.get(f"runs/{started['id']}/")
        page = person.get(f"/runs/{started['id']}/").text.partition("<h1")[2].partition("</h1>")[0].partition(">")[2]
        said = " ".join(re.sub(r"<[^>]+>", "", page).split())
        proof = f"Certified: {ended['largest_batch_size']} trained" if ended["certified"] else ""
        return seconds, int(ended["state"] != "finished"), f"{said}\n{proof}"


def row_of(what: str, load: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="first-answer-") as folder, busy(LOADS[load]):
        seconds, status, printed = run(what, Path(folder))
    said = headline_of(printed)
    starts = re.findall(r"(\d+) starts", printed)
    sizes, proven = (
        re.findall(r"(?:Use batch size|recommended|Keep batch size [\d,]+:) ([\d,]+)", said),
        re.findall(r"Certified[^:]*: (\d+) trained", printed),
    )
    row = {"what": what, "load": load, "seconds": round(seconds, 1), "status": status, "said": said, **claimed(said)}
    row |= {"certified": int(proven[-1]) if proven else None, "recommends": ""}
    row |= {"starts": int(starts[-1])} if starts else {}
    if row["claim"] != "none" and (row["claim"] != "keep" or row["most"] is not None):
        size = int(sizes[0].replace(",", "")) if sizes else TODAY
        changes = [name for label, name in CHANGES.items() if label in said]
        row["recommends"] = json.dumps([TRAINING.get(what, MODEL), size, changes])
    return row


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line of a table for each thing and load."""
    truths = {(row["truth"], row.get("day")): row["pairs"] for row in rows if "truth" in row}
    runs = [row for row in rows if "what" in row]
    yield "| what | beside | runs | claims | certified | seconds | false | not judged |"
    yield "|---|---|---:|---|---|---|---:|---:|"
    for what, load in dict.fromkeys((row["what"], row["load"]) for row in runs):
        of = [row for row in runs if (row["what"], row["load"]) == (what, load)]
        claims = ", ".join(f"{count} {claim}" for claim, count in Counter(row["claim"] for row in of).items())
        sizes, took = {row["certified"] for row in of}, sorted(row["seconds"] for row in of)
        keys = [(row["recommends"], row.get("day")) for row in of]
        judged = [is_true(row, truths[key]) for row, key in zip(of, keys, strict=True) if key in truths]
        left = sum(bool(row["recommends"]) for row in of) - len(judged)
        cells = [what, load, len(of), claims, sizes, f"{took[0]:.0f} to {took[-1]:.0f}", judged.count(False), left]
        yield f"| {' | '.join(map(str, cells))} |"


def keep(row: dict[str, Any]) -> None:
    row = {**row, "day": TODAYS_DATE}
    print(json.dumps(row), flush=True)
    with OUT.open("a") as file:
        file.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", choices=LOADS)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(FIRST_RUNS))
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    for what in given.only * given.times if given.load else ():
        keep(row_of(what, given.load))
    rows = [json.loads(line) for line in OUT.read_text().splitlines()]
    if given.truth:
        of_this_day = [row for row in rows if row.get("day") == TODAYS_DATE]
        known = {"", *(row.get("truth") for row in of_this_day)}
        for key in sorted({row["recommends"] for row in of_this_day if "what" in row} - known):
            keep({"truth": key, "pairs": ratios(*json.loads(key), today=TODAY)})
    if given.summary:
        print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
