"""Tunes training scripts of public repositories, unchanged, and checks each answer by starts of another meter.

The scripts are listed in `public_scripts.toml`, with commit and licence. They are cloned where there is a network; none
of their text is in this repository. Their data is tiny, random and made here by `public_data.py`:

    pip install -r requirements.txt -r benchmarks/requirements.txt  # and the packages that the list names
    python benchmarks/tune_public.py                                # clones and tunes all of them
    python benchmarks/tune_public.py --checkouts FOLDER vae mnist   # some, from FOLDER/OWNER/NAME, added to the results
    python benchmarks/tune_public.py --summary                      # the table of the results that are there

An answer is exact where a start of the largest size stays within the limit for 200 steps (for those of a minute where
they are slower), and one of the next does not, under the product's own meter and under the one in `second_meter/`,
which knows nothing of the product's hook. It is exact for its steps where what the answer names as not seen alone takes
more than the limit: an evaluation, and a few steps stay within it; or a later stage with which the script ends, and its
steps but for the last stay within it. A script that is refused must be refused with the
code that the list expects, because of what stands beside it there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import public_data  # noqa: E402 - the checkout is put on the path first
from public_start import (  # noqa: E402
    STEPS,
    Script,
    alone_run,
    losses_differ,
    metered,
    own_meter_bytes,
    watched_run,
)

from engine.text.units import MIB  # noqa: E402

LIST = ROOT / "benchmarks" / "public_scripts.toml"
RESULTS = ROOT / "benchmarks" / "results" / "tune_public.cpu.jsonl"
STARTS_DIFFER, IN_EVALUATION = "starts_differ", "in an evaluation"
EXACT, OF_STEPS, REFUSED, WRONG = "exact", "exact for its steps", "refused rightly", "wrong"
FEW_STEPS = 20
SECONDS = 1_800
COMPARED, COMPARED_SECONDS = 5, 40.0


def main() -> int:
    """Tune the scripts and write a line for each; 1 where one came out wrong."""
    lines = lines_of(str(__doc__), RESULTS, {script.name: script for script in listed()}, tuned)
    print(table(lines))
    return int(any(line["verdict"] == WRONG for line in lines))


def lines_of(
    description: str,
    results: Path,
    scripts: Mapping[str, Script],
    line_of: Callable[[Script, Path], dict[str, Any]],
    chosen: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Run what the command line names, or `chosen`, or all; write a line for each and return the newest of all.

    `line_of` is given a script, and the folder of a copy in which it is started.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--checkouts", type=Path, help="where the repositories lie as OWNER/NAME")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    if not options.summary:
        with tempfile.TemporaryDirectory(prefix="public_scripts") as scratch:
            for name in options.names or chosen or scripts:
                checkouts = options.checkouts or cloned(scripts[name], Path(scratch))
                with copied(scripts[name], checkouts, Path(scratch)) as folder:
                    line = line_of(scripts[name], folder)
                with results.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)
    stored = map(json.loads, results.read_text().splitlines() if results.exists() else ())
    newest = {line["name"]: line for line in stored}
    return [newest[name] for name in scripts if name in newest]


def listed(text: str | None = None) -> list[Script]:
    """Return the scripts of the list."""
    found = tomllib.loads(LIST.read_text() if text is None else text)["script"]
    return [Script(**{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()}) for each in found]


def cloned(script: Script, scratch: Path) -> Path:
    """Clone a script's repository at the commit of the list; the folder of all clones."""
    folder = scratch / "clones" / script.repository
    if not folder.exists():
        commit = tomllib.loads(LIST.read_text())["repositories"][script.repository]["commit"]
        folder.mkdir(parents=True)
        for words in (
            ["init", "--quiet"],
            ["fetch", "--quiet", "--depth", "1", f"https://github.com/{script.repository}", commit],
            ["checkout", "--quiet", "FETCH_HEAD"],
        ):
            subprocess.run(["git", "-C", str(folder), *words], check=True)
    return scratch / "clones"


def tuned(script: Script, folder: Path) -> dict[str, Any]:
    """Tune one script; the line of results."""
    document, line = document_of(script, folder)
    return line | judged(document, script, folder)


@contextmanager
def copied(script: Script, checkouts: Path, scratch: Path) -> Iterator[Path]:
    """Copy a script's repository for a while, and make its data there; the folder that the script is started in."""
    copy = scratch / "work" / script.name
    shutil.copytree(checkouts / script.repository, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    folder = copy / script.folder
    for made in script.data:
        maker, _, place = made.partition(" ")
        getattr(public_data, maker)(folder / place)
    try:
        yield folder
    finally:
        shutil.rmtree(copy)


def document_of(script: Script, folder: Path, *more: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tune a script, with more options if wanted; the answer's document, and the line's beginning."""
    began = time.monotonic()
    words = ["tune", "--device", "cpu", "--json", "--no-compare-speed", "--memory-limit", f"{script.limit_mib}MiB"]
    words += ["--current-batch-size", str(script.current), "--time-budget", str(SECONDS)]
    words += [*more, "--batch", script.batch] if script.batch else more
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.append({str(ROOT)!r}); from engine.__main__ import main; sys.exit(main())",
        ]
        + [*words, "--", *script.arguments()],
        cwd=folder,
        env=script.variables(),
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
    )
    line: dict[str, Any] = {"name": script.name, "repository": script.repository, "command": script.command}
    line |= {"limit_mib": script.limit_mib, "seconds": round(time.monotonic() - began, 1)}
    line |= {"exit_status": done.returncode}
    try:
        document = json.loads(done.stdout)
    except json.JSONDecodeError:
        document = {"error": {"code": "no_document", "message": (done.stdout + done.stderr)[-2_000:]}}
    return document, line


def judged(document: dict[str, Any], script: Script, folder: Path) -> dict[str, Any]:
    """Return the verdict on an answer, beside what the second meter says of its two sizes."""
    if error := document.get("error"):
        verdict = REFUSED if error["code"] == script.expected else WRONG
        return {"verdict": verdict, "code": error["code"], "starts": None, "answer": None, "reason": error["message"]}
    boundary, probes = document["boundary"], document["probes"]
    largest, refused = boundary["largest_batch_size"], boundary["refused_batch_size"]
    measured = {each["batch_size"]: each["peak_allocated_bytes"] for each in probes}
    found: dict[str, Any] = {
        "starts": len(document["training"]["starts"]),
        "search_starts": sum(p["purpose"] != "curve" for p in probes),
        "sizes": [f"{p['batch_size']}{'' if p['outcome'] == 'fits' else 'x'}" for p in probes],
        "answer": largest,
        "reason": boundary["note"] or boundary["reason"],
    }
    if not boundary["certified"]:
        code = STARTS_DIFFER if boundary["reason"] == "out_of_memory" else boundary["reason"]
        code = IN_EVALUATION if IN_EVALUATION in (boundary["note"] or "") else code
        if code == STARTS_DIFFER:  # its size trained in each of its starts, and should under the other meter
            found["second_meter_bytes"] = [metered(script, folder, largest)[0]]
            code = code if (found["second_meter_bytes"][0] or 1 << 60) <= script.limit_mib * MIB else WRONG
        return found | {"code": code, "verdict": REFUSED if script.expected == code else WRONG}
    truths = [metered(script, folder, size) for size in (largest, refused)]
    own_peaks, peaks = [own_meter_bytes(script, folder, size) for size in (largest, refused)], [t[0] for t in truths]
    limit_bytes = script.limit_mib * MIB
    is_exact = all(is_between(pair, limit_bytes) for pair in (peaks, own_peaks))
    verdict = EXACT
    made, unseen = min(t[1] for t in truths), document["training"]["unseen"]
    if not is_exact and (unseen["unused_loaders"] or (unseen["pass_batches"] or made) < made < STEPS):
        steps = FEW_STEPS if unseen["unused_loaders"] else made - 1
        found["bytes_of_few_steps"] = [metered(script, folder, size, steps)[0] for size in (largest, refused)]
        is_exact, verdict = is_between(found["bytes_of_few_steps"], limit_bytes), OF_STEPS
    runs = [start(script, folder, script.current, COMPARED_SECONDS, COMPARED) for start in (alone_run, watched_run)]
    count, apart = losses_differ(*runs)
    are_same = None if apart is None else apart == 0.0
    found |= {"peaks_bytes": [measured.get(largest), measured.get(refused)], "second_meter_bytes": peaks}
    found |= {"own_meter_bytes": own_peaks, "steps_of_the_truth": [t[1] for t in truths]}
    found |= {"losses_compared": count, "losses_are_same": are_same}
    is_expected = script.expected == EXACT and are_same is not False
    return found | {"verdict": verdict if is_exact and is_expected else WRONG}


def is_between(peaks: Sequence[int | None], limit_bytes: int) -> bool:
    """Whether the first peak stays within the limit, and the second does not."""
    within, beyond = peaks
    return within is not None and beyond is not None and within <= limit_bytes < beyond


def table(lines: list[dict[str, Any]]) -> str:
    """Return one line for each script and the counts."""
    rows = [
        f"{each['name']:28} {each['verdict']:19} {each['starts'] or '-':>3} {each['seconds']:7.1f} s "
        f"{each['answer'] or '-':>7} {(each['reason'] or '')[:110]}"
        for each in lines
    ]
    counts = {
        verdict: sum(each["verdict"] == verdict for each in lines) for verdict in (EXACT, OF_STEPS, REFUSED, WRONG)
    }
    starts = [each["search_starts"] for each in lines if each["verdict"] == EXACT]
    compared = sum(each.get("losses_are_same") is True for each in lines)
    last = f"{len(lines)} of {len(listed())} scripts were run: {counts}; losses the same in {compared}"
    return "\n".join([*rows, last + (f"; starts: median {median(starts)}, most {max(starts)}" if starts else "")])


if __name__ == "__main__":
    sys.exit(main())
