"""Members of a report that pages show, and that no figure follows from, are within what a run can have written."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import SpecError
from engine.kinds import find_contradictions

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "data" / "results"


def document_of(name: str) -> dict[str, Any]:
    read = json.loads((RESULTS / f"{name}.json").read_text())
    made: dict[str, Any] = copy.deepcopy(read.get("result", read))
    return made


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return what sets the member at a path, in which a number is a place in a list."""

    def forge(document: dict[str, Any]) -> None:
        *parents, last = (int(part) if part.isdecimal() else part for part in path.split("."))
        at: Any = document
        for part in parents:
            at = at[part]
        at[last] = value

    return forge


def _a_point_far_above_the_refusal(document: dict[str, Any]) -> None:
    of_nothing = {"step_seconds": None, "samples_per_second": None, "timed_step_seconds": []}
    document["probes"].append({**document["probes"][0], "batch_size": 60_000, "purpose": "curve", **of_nothing})


FORGERIES: tuple[tuple[str, Callable[[dict[str, Any]], None], str], ...] = (
    ("bert_tiny", _a_point_far_above_the_refusal, "probes["),
    ("bert_tiny", _set("device.foreign_processes", [{"pid": 1, "name": "x", "used_bytes": "1 GiB"}]), "device.foreign"),
    ("bert_tiny", _set("device.foreign_processes", [{"pid": {}, "name": "x", "used_bytes": 1}]), "device.foreign"),
    ("bert_tiny", _set("timings.processes", -5), "timings.processes"),
    ("bert_tiny", _set("timings.import_seconds", 9e8), "timings.import_seconds"),
    ("bert_tiny", _set("memory_breakdown.limit_bytes", 1), "memory_breakdown.limit_bytes"),
    ("bert_tiny", _set("memory_breakdown.request.size_bytes", 2**62), "memory_breakdown.request.size_bytes"),
    ("bert_tiny", _set("memory_breakdown.step", -7), "memory_breakdown.step"),
    ("bert_tiny", _set("memory_breakdown.entries.0.modules", 10**15), "memory_breakdown.entries[0].modules"),
    ("bert_tiny", _set("memory_breakdown.entries.0.module", "two\nlines"), "memory_breakdown.entries[0].module"),
    ("bert_tiny", _set("estimate.known_error.typical_fraction", -7e9), "estimate.known_error"),
    ("bert_tiny", _set("estimate.at.0.peak_allocated_bytes", 2**62), "estimate.at[0].peak_allocated_bytes"),
    ("bert_tiny", _set("estimate.spec.precision", "bf16"), "estimate.spec.precision"),
    ("tune_speed", _set("training.waiting_for_data_fraction", 77.0), "training.waiting_for_data_fraction"),
    ("tune_speed", _set("training.tokens_per_step", -5), "training.tokens_per_step"),
    ("tune_speed", _set("training.micro_batches", -4), "training.micro_batches"),
    ("tune_speed", _set("training.throughputs.0.tokens_per_second", 1e300), "training.throughputs[0].tokens"),
    ("tune_speed", _set("probes.0.samples_per_second", 1e308), "probes[0].samples_per_second"),
    ("validate", _set("checks.0.claim", "Certified by NVIDIA"), "checks[0]"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "forge", "field"), FORGERIES, ids=[field for _, _, field in FORGERIES])
def test_a_member_beyond_what_a_run_writes_is_found(
    name: str, forge: Callable[[dict[str, Any]], None], field: str
) -> None:
    document = document_of(name)
    assert find_contradictions(document) == []
    forge(document)
    assert any(each.field.startswith(field) for each in find_contradictions(document))


@pytest.mark.parametrize("member", ["function", "compare_speed"])
def test_a_command_without_what_its_page_reads_is_refused(member: str) -> None:
    document = document_of("tune_speed")
    del document["spec"][member]
    with pytest.raises(SpecError, match=member):
        find_contradictions(document)
