"""How far estimates are from the memory that others published of their trainings.

    python benchmarks/published_trainings.py [--only TEXT] [--under-stated] [--output FILE]

data/published_trainings.json has the rows: source, settings, kind of figure. Each is estimated with a spec made of its
settings, by one trace at its batch size, for the card it ran on. Nothing in the engine is fitted to these rows. What
authors did that no setting says is patched in (published_practices.py). Rows of litgpt are estimated with its own
layers (litgpt_model.py), and beside that with the models of transformers, as its profiles do. A row is scored if its
source states all its settings. The others are listed with the reason: contradictory, under-stated (estimated with
`--under-stated`, as far as they are stated), or not yet expressible. With `--only`, rows of FILE that do not contain
TEXT stay as they are. Needs no GPU; all rows take about ten minutes of one CPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import filterfalse
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import litgpt_model  # noqa: E402
from prediction_error import predicted  # noqa: E402
from published_practices import NOT_IN_PROFILES, patched_in  # noqa: E402

from engine.errors import EngineError  # noqa: E402
from engine.estimate import gpus  # noqa: E402
from engine.estimate.known_errors import ANY_SETTING, OF_LITGPT, settings_compared  # noqa: E402
from engine.estimate.stored.stored_traces import versions  # noqa: E402
from engine.estimate.tracing import trace  # noqa: E402
from engine.measurement.step import apply_precision  # noqa: E402
from engine.settings.catalog import WORKLOADS  # noqa: E402
from engine.settings.catalog.from_config import CONFIG  # noqa: E402
from engine.settings.spec import SETTINGS, RunSpec  # noqa: E402
from engine.text.units import GIB  # noqa: E402

PUBLISHED = ROOT / "benchmarks" / "data" / "published_trainings.json"
RESULTS = ROOT / "benchmarks" / "results" / "published_trainings.json"
NEAR = 0.08
"""The largest error that counts as near."""


def spec_of(row: dict[str, Any], configs: dict[str, dict[str, Any]]) -> RunSpec:
    """Return the training of a row: a model of the catalogue, or a config of the data file."""
    model = row["model"]
    if model in WORKLOADS:
        return RunSpec(model=model, **row["settings"])
    return RunSpec(model=CONFIG, config=json.dumps(configs[model]), task="text-generation", **row["settings"])


def not_scored_because(row: dict[str, Any]) -> str | None:
    """Return why a row counts for no summary; None if it counts."""
    if "contradiction" in row:
        return f"contradictory: {row['contradiction']}"
    if missing := sorted(row["settings"].keys() - SETTINGS.keys()):
        return f"not yet expressible: {', '.join(missing)}"
    if "inexpressible" in row:
        return f"not yet expressible: {row['inexpressible']}"
    return f"under-stated: {', '.join(row['unstated'])}" if "unstated" in row else None


def is_estimated(row: dict[str, Any], *, also_under_stated: bool) -> bool:
    """Whether a row has all that a spec needs, and is asked for."""
    is_asked = also_under_stated or "unstated" not in row
    return (
        is_asked
        and bool(row["model"])
        and not (row["settings"].keys() - SETTINGS.keys())
        and "contradiction" not in row
    )


def compared(row: dict[str, Any], source: dict[str, Any], configs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Estimate a row and return it beside its measurement."""
    spec = spec_of(row, configs)
    apply_precision(spec.precision)
    make_step = trace.step_maker(spec)  # imports the libraries that practices change
    measured_bytes = round(row["measured"] * source["unit_bytes"])
    found: dict[str, Any] = {"family": spec.workload.architecture, "compared": settings_compared(spec)}
    if (year := source.get("litgpt_of")) is not None:
        if "not_in_transformers" not in row:
            as_profile = row | {"practices": [*filterfalse(NOT_IN_PROFILES.__contains__, row.get("practices", ()))]}
            by_transformers = _predicted_bytes(make_step, spec, as_profile, source)
            found["with_transformers_fraction"] = round(by_transformers / measured_bytes - 1, 5)
        make_step = litgpt_model.step_maker(spec, configs[row["model"]], year)
    predicted_bytes = _predicted_bytes(make_step, spec, row, source)
    return found | {
        "predicted_bytes": predicted_bytes,
        "measured_bytes": measured_bytes,
        "error_fraction": round(predicted_bytes / measured_bytes - 1, 5),
    }


def _predicted_bytes(make_step: trace.MakeStep, spec: RunSpec, row: dict[str, Any], source: dict[str, Any]) -> int:
    """Return what is estimated of the figure that the source counts."""
    card = gpus.find(source["gpu"])
    with patched_in(row.get("practices", ())):
        at = predicted(make_step, card, row["batch_size"], spec.precision)
    reserved_bytes = at.peak_reserved_bytes or 0
    figures: dict[str, int] = {
        "allocated": at.peak_allocated_bytes,
        "reserved": reserved_bytes,
        "device": reserved_bytes + source.get("context_bytes", card.context_bytes),
    }
    return figures[source["figure"]]


def summary(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return errors by family and setting, of the rows that are scored."""
    errors: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["not_scored_because"] is None and "error_fraction" in row:
            of_family = errors.setdefault(row["family"], {})
            for setting in (ANY_SETTING, *row["compared"]):
                of_family.setdefault(setting, []).append(row["error_fraction"])
            if "with_transformers_fraction" in row:
                of_family.setdefault(OF_LITGPT, []).append(row["with_transformers_fraction"])
    return {family: {name: _figures(of) for name, of in sorted(each.items())} for family, each in errors.items()}


def _figures(errors: Sequence[float]) -> dict[str, Any]:
    return {
        "runs": len(errors),
        "typical_fraction": round(median(map(abs, errors)), 4),
        "worst_fraction": max(map(abs, errors)),
        "low_fraction": max(0.0, -min(errors)),
        "near_fraction": round(sum(abs(error) <= NEAR for error in errors) / len(errors), 3),
    }


def print_row(row: dict[str, Any]) -> None:
    figures = " " * 30
    if "error_fraction" in row:
        sizes = f"{row['predicted_bytes'] / GIB:7.2f} {row['measured_bytes'] / GIB:7.2f} GiB"
        figures = f"{sizes} {row['error_fraction']:+8.1%}  "
    print(f"{row['source']:18} {row['case'][:48]:48} {figures} {row['not_scored_because'] or ''}", flush=True)


def scored(
    published: Iterable[dict[str, Any]],
    *,
    only: str,
    stored: Path,
    is_wanted: Callable[[dict[str, Any]], bool],
    compare: Callable[[dict[str, Any]], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Compare the rows that contain `only`, each printed as it is made; the others stay as they are stored."""
    known = json.loads(stored.read_text())["rows"] if only and stored.exists() else []
    earlier = {(row["source"], row["case"]): row for row in known}
    rows = []
    for row in published:
        key = (row["source"], row["case"])
        if key in earlier and only not in " ".join(key):
            rows.append(earlier[key])
            continue
        made = {"source": row["source"], "case": row["case"], "not_scored_because": not_scored_because(row)}
        made |= {name: row[name] for name in ("practices", "explanation") if name in row}
        if is_wanted(row) and only in " ".join(key):
            try:
                made |= compare(row)
            except EngineError as error:
                made["not_scored_because"] = f"not estimated: {error}"
        rows.append(made)
        print_row(made)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose source or case contains it")
    parser.add_argument("--under-stated", action="store_true", help="estimate these rows too")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    data = json.loads(PUBLISHED.read_text())
    rows = scored(
        data["rows"],
        only=options.only,
        stored=options.output,
        is_wanted=lambda row: is_estimated(row, also_under_stated=options.under_stated),
        compare=lambda row: compared(row, data["sources"][row["source"]], data["configs"]),
    )
    found = summary(rows)
    for family, of in found.items():
        for setting, figures in of.items():
            print(f"{family} {setting}: {json.dumps(figures)}")
    options.output.write_text(json.dumps({"versions": versions(), "summary": found, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
