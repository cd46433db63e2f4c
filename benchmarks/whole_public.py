"""Tunes public scripts with `--whole-run`, and then really runs the answers to the end of two epochs.

    python benchmarks/whole_public.py --checkouts FOLDER              # all of them, added to the results
    python benchmarks/whole_public.py --checkouts FOLDER mnist unet   # some
    python benchmarks/whole_public.py --summary                       # the table of the results that are there

The scripts, their data and the meter are those of `tune_public.py`. An answer survives where the whole script ends in
order with the largest size, and stays within the limit under the second meter, which knows nothing of the product's
hook. The size above it is run to the end, too: where that stays within the limit, the answer was too small.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from public_start import Script, whole_run_bytes  # noqa: E402 - the checkout is put on the path first
from tune_public import document_of, lines_of, listed  # noqa: E402

from engine.text.units import MIB  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "whole_public.cpu.jsonl"
CHOSEN = (
    *("vae", "mnist", "super_resolution", "gan_dcgan", "lightning_autoencoder", "pyg_mutag_gin"),
    *("hydra_template", "ignite_mnist", "vae_cvae", "tutorial_bidirectional"),
)
SECONDS = 600.0


def main() -> int:
    """Tune and run the scripts, and write a line for each; 1 where an answer did not survive."""
    lines = lines_of(str(__doc__), RESULTS, {script.name: script.ending() for script in listed()}, survived, CHOSEN)
    print(table(lines))
    return int(any(not line["survives"] for line in lines))


def survived(script: Script, folder: Path) -> dict[str, Any]:
    """Return the line of one script: its answer, and whether that size and the next one come to the end."""
    document, line = document_of(script, folder, "--whole-run")
    if error := document.get("error"):
        return line | {"survives": False, "reason": error["message"]}
    boundary = document["boundary"]
    answer, refused = boundary["largest_batch_size"], boundary["refused_batch_size"]
    line |= {"answer": answer, "certified": boundary["certified"], "starts": len(document["training"]["starts"])}
    line |= {"sizes": [f"{p['batch_size']}{'' if p['outcome'] == 'fits' else 'x'}" for p in document["probes"]]}
    line |= {"reason": boundary["reason"], "note": boundary["note"]}
    for what, size in (("ours", answer), ("next", refused)):
        if size and answer:
            status, peak, words = whole_run_bytes(script, folder, size, SECONDS)
            is_within = status == 0 and peak is not None and peak <= script.limit_mib * MIB
            line |= {f"{what}_exit_status": status, f"{what}_bytes": peak, f"{what}_is_within": is_within}
            line |= {f"{what}_last_words": words} if status else {}
    return line | {"survives": bool(answer) and line["ours_is_within"]}


def table(lines: list[dict[str, Any]]) -> str:
    """Return one line for each script and the counts."""
    rows = [
        f"{each['name']:24} {'survives' if each['survives'] else 'FAILS':9} {each.get('answer') or '-':>6} "
        f"{(each.get('ours_bytes') or 0) / MIB:8.1f} of {each['limit_mib']:5} MiB; the next "
        f"{(each.get('next_bytes') or 0) / MIB:8.1f} MiB; {each.get('starts') or '-'} starts"
        for each in lines
    ]
    return "\n".join([*rows, f"{sum(each['survives'] for each in lines)} of {len(lines)} survive"])


if __name__ == "__main__":
    sys.exit(main())
