"""A document that claims more than its probes show is refused, with the field and both values."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forged_documents import drawn, forgeries, is_refused, originals
from engine.errors import SpecError
from engine.kinds import find_contradictions
from engine.recompute import Contradiction
from engine.text.units import MIB
from engine.validation.spec import ValidationSpec
from engine.validation.verdict import (
    Check,
    StepFigures,
    ValidationResult,
    Verdict,
    check_of_compile_time,
    check_of_compiled_memory,
    check_of_gradients,
    check_of_speed,
    not_checked,
)
from tests.engine.honest_worker import LIMIT_BYTES, HonestWorker, document_of
from tests.factories import FACTS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = document_of(HonestWorker(528))


def forged(path: str, value: Any, document: dict[str, Any] = DOCUMENT) -> dict[str, Any]:
    copied = copy.deepcopy(document)
    *way, last = path.split(".")
    part: Any = copied
    for step in way:
        part = part[int(step)] if isinstance(part, list) else part[step]
    part[last] = value(part[last]) if callable(value) else value
    return copied


@pytest.mark.parametrize(
    ("path", "value", "recomputed"),
    [
        ("boundary.largest_batch_size", 529, 528),
        ("boundary.reason", "max_batch_size", "out_of_memory"),
        ("recommended.batch_size", 527, DOCUMENT["recommended"]["batch_size"]),
        ("speedup", 99.0, DOCUMENT["speedup"]),
        ("savings.per_year_usd", 1e6, DOCUMENT["savings"]["per_year_usd"]),
        ("waste.at_current_bytes", 1, DOCUMENT["waste"]["at_current_bytes"]),
        ("batch_size_ratio", 1000.0, DOCUMENT["batch_size_ratio"]),
        ("speed.quiet_rounds", 100, DOCUMENT["speed"]["quiet_rounds"]),
        ("speed.claim", "at_least", "figure"),
        ("speedup_low", 98.0, DOCUMENT["speedup_low"]),
        ("largest_with_reserve.batch_size", 528, DOCUMENT["largest_with_reserve"]["batch_size"]),
    ],
)
def test_a_raised_claim_is_named_with_both_values(path: str, value: Any, recomputed: Any) -> None:
    assert find_contradictions(forged(path, value)) == [Contradiction(path, value, recomputed)]


def test_a_reason_names_no_figures_where_nothing_was_compared() -> None:
    """Pages say them: "None is recommended: 528 is 50 to 99x as fast as your 16"."""
    reason = "speed not measurable here now: 528 is between 50.0x and 99.0x as fast as 16"
    ended = document_of(HonestWorker(528, time_is_up_after=6))
    assert (ended["speed"]["rounds"], find_contradictions(ended)) == (0, [])
    assert "speed.reason" in [each.field for each in find_contradictions(forged("speed.reason", reason, ended))]


def test_a_certificate_needs_the_probe_that_was_refused() -> None:
    probes = [p for p in DOCUMENT["probes"] if p["outcome"] == "fits"]
    found = {each.field: each.recomputed for each in find_contradictions({**DOCUMENT, "probes": probes})}
    assert (found["boundary.certified"], found["boundary.reason"]) == (False, "time_budget")


def test_a_warning_that_was_taken_out_is_missed() -> None:
    moved = document_of(HonestWorker(528, soak_boundary=500))
    note = "528 trained 3 steps, but not 5 in a row: the boundary moved down"
    assert find_contradictions(forged("boundary.note", None, moved)) == [Contradiction("boundary.note", None, note)]


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("probes.0.peak_allocated_bytes", LIMIT_BYTES + 1, "probes[0].peak_allocated_bytes"),
        ("probes.0.memory_by_kind.other_bytes", 6 * MIB, "probes[0].memory_by_kind"),
        ("probes.0.batch_size", 0, "probes[0].batch_size"),
        ("probes.0.wall_seconds", 1e8, "timings.total_seconds"),
        ("device.capacity_bytes", 0, "device.capacity_bytes"),
    ],
)
def test_figures_that_no_machine_can_have_measured_are_named(path: str, value: Any, field: str) -> None:
    assert find_contradictions(forged(path, value))[0].field == field


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("bonus", 1, "bonus"),
        ("probes.0.bonus", 1, "probes[0].bonus"),
        ("probes.0.batch_size", "1", "probes[0].batch_size"),
        ("boundary.reason", "luck", "boundary.reason"),
        ("spec.precision", "fp7", "precision"),
        ("timings.total_seconds", float("nan"), "timings.total_seconds"),
        ("probes.0.wall_seconds", -1.0, "probes[0].wall_seconds"),
        ("probes.0.peak_allocated_bytes", 2**70, "probes[0].peak_allocated_bytes"),
        ("environment.torch", "x" * 30_000, "environment.torch"),
        ("schema", 2, "schema"),
        ("training", None, "training"),
        ("device", {}, "device.device"),
        ("estimate", {}, "estimate.spec"),
    ],
)
def test_a_malformed_document_is_an_error_of_its_field(path: str, value: Any, field: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    *way, last = path.split(".")
    part: Any = document
    for step in way:
        part = part[int(step)] if isinstance(part, list) else part[step]
    part[last] = value
    with pytest.raises(SpecError) as error:
        find_contradictions(document)
    assert error.value.field == field


def test_a_document_of_any_depth_and_kind_is_read_without_harm() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for document in (forged("environment.torch", deep), [], None, {"checks": 1}, {}, {"result": DOCUMENT}):
        with pytest.raises(SpecError):
            find_contradictions(document)  # type: ignore[arg-type]


def test_random_damage_is_refused_or_believed_but_never_an_error_of_ours() -> None:
    rng = random.Random(3)
    values = [None, True, 0, -1, 2**62, 1e300, "", "fits", [], [1], {}, {"a": 1}]
    small = document_of(HonestWorker(20))
    del small["speed_rounds"][2:]
    for _ in range(400):
        document, part = copy.deepcopy(small), None
        inner: Any = document
        while isinstance(inner, (dict, list)) and inner:
            part, key = inner, rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
            inner = inner[key]
            if rng.random() < 0.2:
                break
        part[key] = rng.choice(values)  # type: ignore[index]
        is_refused(document)


def test_real_documents_are_believed() -> None:
    assert {name: find_contradictions(document) for name, document in originals().items()} == dict.fromkeys(
        originals(), []
    )


@pytest.mark.slow
def test_two_hundred_forgeries_of_them_are_refused() -> None:
    made = list(forgeries())
    chosen = drawn([(group, name) for group, name, _ in made])
    assert len(chosen) == 200
    assert [name for _, name, document in made if name in chosen and not is_refused(document)] == []


EAGER, COMPILED = StepFigures(100 * MIB, (0.1,) * 6), StepFigures(90 * MIB, (0.05,) * 6, compile_seconds=3.0)


def compiled(*, steps: dict[str, StepFigures] | None = None, checks: tuple[Check, ...] | None = None) -> dict[str, Any]:
    spec = ValidationSpec("bert-tiny", check="compile", memory_limit_bytes=FACTS.limit_bytes)
    checks = checks or (
        check_of_compile_time(COMPILED),
        check_of_speed(EAGER, COMPILED),
        check_of_compiled_memory(EAGER, COMPILED),
        check_of_gradients("compiled fp32", 1e-7, spec.tolerance, "those of eager mode"),
    )
    steps = steps or {"eager": EAGER, "compiled": COMPILED}
    return dict(json.loads(json.dumps(ValidationResult(spec, FACTS, checks, steps, {}, 60.0).to_dict())))


def test_a_validation_is_decided_again_by_its_steps() -> None:
    slower = compiled(steps={"eager": EAGER, "compiled": replace(COMPILED, step_seconds=(0.2,) * 6)})
    assert find_contradictions(compiled()) == []
    assert "checks[1].verdict" in {each.field for each in find_contradictions(slower)}


def test_a_validation_that_was_cut_short_or_failed_is_believed() -> None:
    failed = Check("compiles", "torch.compile compiles this training", Verdict.FAILED, "RuntimeError: no compiler")
    late = not_checked("compiles", "torch.compile compiles this training", "the time budget was spent before")
    for check in (failed, late):
        assert find_contradictions(compiled(steps={"eager": EAGER}, checks=(check,))) == []
    no_gradients = not_checked("gradients", "the gradients of fp32 agree with those of eager mode", "no loss")
    assert find_contradictions(compiled(checks=(*_first_three(), no_gradients))) == []


def _first_three() -> tuple[Check, ...]:
    return (check_of_compile_time(COMPILED), check_of_speed(EAGER, COMPILED), check_of_compiled_memory(EAGER, COMPILED))


def test_a_validation_that_leaves_a_check_out_or_passes_a_failed_one_is_refused() -> None:
    assert [each.field for each in find_contradictions(compiled(checks=_first_three()))] == ["checks"]
    wrong = check_of_gradients("compiled fp32", 0.5, 0.001, "those of eager mode")
    fields = [
        f"{each.field}"
        for each in find_contradictions(forged("checks.3.verdict", "passed", compiled(checks=(*_first_three(), wrong))))
    ]
    assert "checks[3].verdict" in fields


def test_reading_documents_does_not_load_torch() -> None:
    code = "import sys, engine.recompute; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
