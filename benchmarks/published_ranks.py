"""How far estimates of several GPUs are from the memory that others published of theirs, case by case.

    python benchmarks/published_ranks.py [--only TEXT] [--output FILE]

data/published_ranks.json has the rows, as published_trainings.json, with whose practices and reasons they are read.
Nothing is fitted to them. Rows that contradict themselves, are under-stated or not expressible are listed with the
reason. With `--only`, rows of FILE that do not contain TEXT stay as they are. Needs no GPU; takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import torch  # noqa: E402
from published_practices import patched_in  # noqa: E402
from published_trainings import PUBLISHED, not_scored_because, scored, spec_of  # noqa: E402
from torch import nn  # noqa: E402

from engine.estimate import gpus  # noqa: E402
from engine.estimate.batch_model import RetracedModel  # noqa: E402
from engine.estimate.predict import estimate_at  # noqa: E402
from engine.estimate.stored.stored_traces import versions  # noqa: E402
from engine.estimate.tracing import trace  # noqa: E402
from engine.estimate.tracing.ranks import step_of_rank  # noqa: E402
from engine.measurement.step import TrainingStep, apply_precision  # noqa: E402
from engine.measurement.workloads import Built  # noqa: E402
from engine.settings.spec import RunSpec  # noqa: E402

ROWS = ROOT / "benchmarks" / "data" / "published_ranks.json"
RESULTS = ROOT / "benchmarks" / "results" / "published_ranks.json"
LINEAR_LAYERS = "twenty linear layers"
WIDTH, LAYERS = 2_000, 20


def compared(row: dict[str, Any], source: dict[str, Any], configs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Estimate a row and return it beside its measurement."""
    card = gpus.find(source["gpu"])
    is_linear = row["model"] == LINEAR_LAYERS
    spec = RunSpec("bert-tiny", **row["settings"]) if is_linear else spec_of(row, configs)
    apply_precision(spec.precision)
    trace.step_maker(spec)  # imports the libraries that practices change
    with patched_in(row.get("practices", ())):
        if is_linear:
            conditions = trace.conditions_for(card, spec.precision)
            record = partial(trace.record, partial(linear_layers, spec), conditions=conditions, steps=1)
            model: Any = RetracedModel(record, (), conditions.method)
        else:
            model = trace.model_of_one_size(spec, card)
        at = estimate_at(model, card, row["batch_size"])
    is_allocated = row.get("figure", source["figure"]) == "allocated"
    predicted_bytes = at.peak_allocated_bytes if is_allocated else at.peak_reserved_bytes or 0
    measured_bytes = round(row["measured"] * source["unit_bytes"])
    return {
        "predicted_bytes": predicted_bytes,
        "measured_bytes": measured_bytes,
        "error_fraction": round(predicted_bytes / measured_bytes - 1, 5),
    }


def linear_layers(spec: RunSpec, device: torch.device) -> TrainingStep:
    """Return the step of PyTorch's recipe for ZeroRedundancyOptimizer: layers and batch as there."""
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])

    def make_batch(samples: int) -> dict[str, torch.Tensor]:
        return {name: torch.randn(samples, WIDTH, device=device) for name in ("inputs", "labels")}

    forward, loss = (
        lambda batch: model(batch["inputs"]),
        lambda out, batch: nn.functional.mse_loss(out, batch["labels"]),
    )
    return step_of_rank(spec, Built(model, make_batch, forward, loss), device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose source or case contains it")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    data = json.loads(ROWS.read_text())
    configs = json.loads(PUBLISHED.read_text())["configs"] | data["configs"]
    rows = scored(
        data["rows"],
        only=options.only,
        stored=options.output,
        is_wanted=lambda row: not_scored_because(row) is None,
        compare=lambda row: compared(row, data["sources"][row["source"]], configs),
    )
    errors = [abs(row["error_fraction"]) for row in rows if "error_fraction" in row]
    summary = {"rows": len(rows), "estimated": len(errors)}
    summary |= {"median_fraction": round(median(errors), 4), "worst_fraction": max(errors)} if errors else {}
    print(json.dumps(summary))
    options.output.write_text(json.dumps({"versions": versions(), "summary": summary, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
