"""Tries the attacks on an earlier version again, on a real server with people of every role: what each answers now.

    python -m benchmarks.attacks [--database sqlite|postgres]
    python -m benchmarks.attacks --only marks --out /tmp/try.json

H1 to L10 are the findings of two days of attacks on 06ee43b: forged documents, floods of events, figures without their
origin, texts that others' programs would execute, secrets of scripts, and other users of the same machine. A row says
what is tried, what is right, what was answered in how many seconds, and whether the portal held. A figure in brackets
is what the earlier version did. Seconds are those of this machine; where one decides, its limit allows for other load.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
RESULTS = ROOT / "benchmarks" / "results"
FINDINGS = [*("H1", "H2"), *(f"M{n}" for n in range(1, 11)), *(f"L{n}" for n in range(1, 11))]

from benchmarks.attacks import commands, documents, floods, machine, marks, texts  # noqa: E402
from benchmarks.attacks.portal import DECIDED, HELD, NOT_HELD, Attacked, Row, row  # noqa: E402

SUBJECTS = (documents, floods, marks, texts, commands, machine)


def tried_safely(attack: Callable[[Attacked], Iterator[Row]], portal: Attacked) -> Iterator[Row]:
    """Yield the rows of an attack. One that breaks off has a row that says so, and the others are tried."""
    try:
        yield from attack(portal)
    except Exception as exc:  # noqa: BLE001 - whatever it is, it is printed, and its row did not hold
        traceback.print_exc()
        yield row("-", attack.__name__, "an answer to each of its attacks", False, f"it broke off: {exc!r}")


def tried(portal: Attacked, only: str) -> list[Row]:
    """Try all attacks, or those whose name holds a text, one after the other."""
    rows = []
    for subject in SUBJECTS:
        for attack in subject.ATTACKS:
            if only and only not in attack.__name__:
                continue
            for each in tried_safely(attack, portal):
                rows.append(each)
                seconds = f"{each.seconds:.1f} s"
                print(f"{each.finding:4} {each.outcome:14} {each.tried}: {seconds}, {each.answer}", flush=True)
    return rows


def report(rows: list[Row], options: argparse.Namespace) -> dict[str, Any]:
    order = {name: place for place, name in enumerate([*FINDINGS, "-"])}
    rows = sorted(rows, key=lambda each: order[each.finding])
    arguments = [] if options.database == "sqlite" else ["--database", options.database]
    return {
        "command": shlex.join(["python", "-m", "benchmarks.attacks", *arguments]),
        "database": options.database,
        "server": "gunicorn, 1 process of 16 threads",
        "attacks": len(rows),
        **{name: sum(each.outcome == name for each in rows) for name in (HELD, NOT_HELD, DECIDED)},
        "by_finding": dict(Counter(each.finding for each in rows)),
        "findings_not_tried": [name for name in FINDINGS if name not in {each.finding for each in rows}],
        "rows": [each.to_dict() for each in rows],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--only", default="", metavar="TEXT", help="attacks whose name in this folder holds it")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    machine_facts: dict[str, Any] = {"cores": os.cpu_count(), "python": platform.python_version()}
    machine_facts |= {"system": platform.platform(), "load_average_before": round(os.getloadavg()[0], 1)}
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memorymark-attacks-") as folder:
        portal = Attacked(Path(folder), options.database, commands.REGISTERED)
        try:
            rows = tried(portal, options.only)
        finally:
            portal.close()
    machine_facts |= {"load_average_after": round(os.getloadavg()[0], 1), "seconds": round(time.monotonic() - began)}
    found = {**report(rows, options), "machine": machine_facts}
    out = options.out or RESULTS / f"attacks.{options.database}.json"
    out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(json.dumps({name: value for name, value in found.items() if name != "rows"}, indent=1))
    return 1 if found[NOT_HELD] else 0


if __name__ == "__main__":
    sys.exit(main())
