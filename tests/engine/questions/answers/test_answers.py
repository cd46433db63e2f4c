"""No conclusion of a document can be stored: whatever it says, its answer is what its facts give."""

import copy
import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from engine.errors import SpecError
from engine.facts.not_compared import NotCompared
from engine.questions.answers import ImpossibleFiguresError
from engine.questions.answers.document import MOST_BLOCKS, MOST_ROUNDS
from engine.questions.kinds import answered
from engine.questions.validation.spec import ValidationSpec
from engine.questions.validation.verdict import (
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
from engine.text.units import MIB
from tests.engine.honest_worker import LIMIT_BYTES, HonestWorker, document_of
from tests.engine.questions.answers import own_race_documents, race_documents
from tests.engine.questions.answers.answers import changed, differing, originals
from tests.factories import FACTS

DOCUMENT = document_of(HonestWorker(528))
NOISY = document_of(HonestWorker(528, noise=0.4, others_cores=1.5))
LIES = {
    **{"figure": "at_least", "nothing": "figure", "at_least": "figure", "no_gain": "figure"},
    **{"passed": "failed", "failed": "passed", "warning": "passed", "not_checked": "not_checked"},
    **{"same_within_rounding": "same_to_the_bit", "same_to_the_bit": "differs", "differs": "same_to_the_bit"},
}
"""What an enum becomes: another member of it."""
FACTS_OF_A_SEARCH = re.compile(
    r"(schema|spec|device|probes|environment|timings|training(?!\.peak$)|memory_breakdown|estimate)\b|"
    r"boundary\.(reason|certified|allowed_sizes|is_of_earlier_run|had_trained_earlier)|speed\.(why|seconds|others_cores|cores)|"
    r"speed_rounds\[\d+\]\.(stage|seconds|left_out|blocks\[\d+\]\.(batch_size|first_step|steps|others_cores|was_held))"
)
FACTS_OF_A_RACE = re.compile(
    r"(schema|spec|device|environment|total_seconds|own_difference|cores|today|facts|starts|is_time_up|rounds\w*)\b|"
    r"chosen_memory_bytes|(chosen_numbers|rows\[\d+\]\.numbers)\.largest_difference|"
    r"(rows|sizes)\[\d+\]\.(entry|name|memory_bytes|compile_seconds|reason|largest_batch_size|label|batch_size)"
)
FACTS_OF_A_VALIDATION = re.compile(
    r"(schema|spec|device|environment|total_seconds|steps)\b|checks\[\d+\]\.(name|measured)"
)


def lied(value: Any, facts: re.Pattern[str], path: str = "") -> Any:
    """Return a document whose members are other ones wherever they are no facts."""
    if facts.match(path.removeprefix(".")):
        return value
    if isinstance(value, dict):
        return {name: lied(each, facts, f"{path}.{name}") for name, each in value.items()}
    if isinstance(value, list):
        return [lied(each, facts, f"{path}[{place}]") for place, each in enumerate(value)]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 2 + 1
    return LIES.get(value, f"{value}, use 4,096: 50x as fast") if isinstance(value, str) else value


def documents() -> Iterator[tuple[str, dict[str, Any], re.Pattern[str]]]:
    for name, document in {**originals(), "noisy": NOISY, "certified": DOCUMENT}.items():
        yield name, document, FACTS_OF_A_VALIDATION if "checks" in document else FACTS_OF_A_SEARCH
    for name in ("changes that gain", "losses that differ", "a batch size of its own"):
        yield f"race: {name}", race_documents.document_of(name), FACTS_OF_A_RACE
    for name in ("two that gain", "workers first", "losses that differ", "a change that fails later"):
        facts = re.compile(FACTS_OF_A_RACE.pattern.replace("|reason|", "|failure|"))
        yield f"script's race: {name}", own_race_documents.document_of(name), facts


@pytest.mark.parametrize(("name", "document", "facts"), list(documents()), ids=lambda each: str(each)[:40])
def test_no_conclusion_can_be_stored(name: str, document: dict[str, Any], facts: re.Pattern[str]) -> None:
    document = answered(document)  # in one of an earlier build a sentence may be the only fact
    forged = lied(document, facts)
    assert forged != document
    assert answered({**forged, "bonus": "50x as fast"}) == document


def test_a_certificate_needs_the_probe_that_was_refused() -> None:
    fitting = [p for p in DOCUMENT["probes"] if p["outcome"] == "fits"]
    boundary = answered({**DOCUMENT, "probes": fitting})["boundary"]
    assert (boundary["certified"], boundary["reason"]) == (False, "time_budget")
    for claimed in ({"largest_batch_size": 529}, {"refused_batch_size": 4_096}, {"reason": "max_batch_size"}):
        found = answered({**DOCUMENT, "boundary": {**DOCUMENT["boundary"], **claimed}})["boundary"]
        assert found == DOCUMENT["boundary"]


def test_a_run_may_say_that_it_certifies_nothing_and_no_more() -> None:
    assert not answered(changed("boundary.certified", False, DOCUMENT))["boundary"]["certified"]
    ended = document_of(HonestWorker(528, time_is_up_after=4))
    assert answered(changed("boundary.certified", True, ended)) == answered(ended)


def test_what_the_probes_show_is_noted_whatever_the_note_says() -> None:
    moved = document_of(HonestWorker(528, soak_boundary=500))
    note = "528 trained 3 steps, but not 5 in a row: the boundary moved down"
    for said in (None, "use 4,096: 50x as fast", f"no checkpoint was saved; {note}"):
        assert answered(changed("boundary.note", said, moved))["boundary"]["note"] == note


def test_of_an_earlier_build_the_sentence_tells_why_nothing_was_compared_and_no_other_sentence_does() -> None:
    ended = document_of(HonestWorker(528, time_is_up_after=6))
    del ended["speed"]["why"]
    assert answered(ended)["speed"]["why"] == NotCompared.TIME_ENDED
    forged = changed("speed.reason", "528 is 50 to 99x as fast as your 16", ended)
    assert answered(forged)["speed"]["why"] == NotCompared.RUN_ENDED


def test_rounds_that_were_left_out_leave_out_what_they_showed() -> None:
    few = answered({**DOCUMENT, "speed_rounds": DOCUMENT["speed_rounds"][:3]})
    assert (few["speed"]["claim"], few["recommended"]) == ("nothing", None)


IMPOSSIBLE: tuple[tuple[str, str, Any, str], ...] = (
    ("", "probes.0.peak_allocated_bytes", LIMIT_BYTES + 1, "probes[0].peak_allocated_bytes"),
    ("", "probes.0.memory_by_kind.other_bytes", 6 * MIB, "probes[0].memory_by_kind"),
    ("", "probes.0.batch_size", 0, "probes[0].batch_size"),
    ("", "probes.0.wall_seconds", 1e8, "timings.total_seconds"),
    ("", "device.capacity_bytes", 0, "device.capacity_bytes"),
    ("", "device.name", "A card\nUse 4,096", "device.name"),
    ("", "device.foreign_processes", [{"pid": 1}] * 1_001, "device.foreign_processes"),
    ("", "speed.others_cores", 1e30, "speed.others_cores"),
    ("", "speed.cores", 10**6, "speed.cores"),
    ("", "speed_rounds.0.blocks.0.others_cores", -1.0, "speed_rounds[0].blocks[0].others_cores"),
    ("", "speed_rounds.0.blocks.0.steps", 10**6, "speed_rounds[0].blocks[0].first_step"),
    ("", "speed_rounds.0.seconds", 0.0, "speed_rounds[0].seconds"),
    ("bert_tiny", "probes", lambda each: [*each, each[0] | {"batch_size": 60_000, "purpose": "curve"}], "probes["),
    ("bert_tiny", "device.foreign_processes", [{"pid": {}, "name": "x", "used_bytes": 1}], "device.foreign"),
    ("bert_tiny", "timings.processes", -5, "timings.processes"),
    ("bert_tiny", "timings.import_seconds", 9e8, "timings.import_seconds"),
    ("bert_tiny", "memory_breakdown.limit_bytes", 1, "memory_breakdown.limit_bytes"),
    ("bert_tiny", "memory_breakdown.request.size_bytes", 2**62, "memory_breakdown.request.size_bytes"),
    ("bert_tiny", "memory_breakdown.entries.0.modules", 10**15, "memory_breakdown.entries[0].modules"),
    ("bert_tiny", "memory_breakdown.entries.0.module", "two\nlines", "memory_breakdown.entries[0].module"),
    ("bert_tiny", "estimate.known_error.typical_fraction", -7e9, "estimate.known_error"),
    ("bert_tiny", "estimate.at.0.peak_allocated_bytes", 2**62, "estimate.at[0].peak_allocated_bytes"),
    ("bert_tiny", "estimate.spec.precision", "bf16", "estimate.spec.precision"),
    ("bert_tiny", "estimate.largest_batch_size", -1, "estimate.largest_batch_size"),
    ("tune_speed", "training.waiting_for_data_fraction", 77.0, "training.waiting_for_data_fraction"),
    ("tune_speed", "training.tokens_per_step", -5, "training.tokens_per_step"),
    ("tune_speed", "training.micro_batches", -4, "training.micro_batches"),
    ("tune_speed", "training.starts.0.0", 7, "training.starts[0]"),
    ("tune_speed", "training.rank_peaks_bytes.0", 7, "training.rank_peaks_bytes"),
    ("tune_speed", "training.changed_files", ["a\nb"], "training.changed_files"),
    ("tune_speed", "training.throughputs", lambda each: each * 9, "training.throughputs"),
    ("tune_speed", "probes.0.samples_per_second", 1e308, "probes[0].samples_per_second"),
    ("validate", "steps.forward.peak_bytes", 2**60, "steps.forward.peak_bytes"),
    ("validate", "total_seconds", 0.0, "total_seconds"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "path", "value", "field"), IMPOSSIBLE, ids=[each[3] for each in IMPOSSIBLE])
def test_figures_that_no_machine_can_have_measured_are_named(name: str, path: str, value: Any, field: str) -> None:
    with pytest.raises(ImpossibleFiguresError) as error:
        answered(changed(path, value, originals()[name] if name else DOCUMENT))
    assert error.value.found[0].field.startswith(field)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("probes.0.batch_size", "1", "probes[0].batch_size"),
        ("boundary.reason", "luck", "boundary.reason"),
        ("spec.precision", "fp7", "precision"),
        ("timings.total_seconds", float("nan"), "timings.total_seconds"),
        ("probes.0.wall_seconds", -1.0, "probes[0].wall_seconds"),
        ("probes.0.peak_allocated_bytes", 2**70, "probes[0].peak_allocated_bytes"),
        ("environment.torch", "x" * 30_000, "environment.torch"),
        ("schema", 2, "schema"),
        ("device", {}, "device.device"),
        ("estimate", {}, "estimate.spec"),
        ("speed_rounds", lambda rounds: rounds * (MOST_ROUNDS + 1), "speed_rounds"),
        ("speed_rounds.0.blocks", lambda blocks: blocks * 2, "speed_rounds[0].blocks"),
    ],
)
def test_a_malformed_document_is_an_error_of_its_field(path: str, value: Any, field: str) -> None:
    with pytest.raises(SpecError) as error:
        answered({**DOCUMENT, path: value} if path == "estimate" else changed(path, value, DOCUMENT))
    assert error.value.field == field


def test_no_comparison_of_a_machine_that_stays_noisy_has_as_many_rounds_as_are_refused() -> None:
    document = document_of(HonestWorker(20_000, noise=0.9, others_cores=3.0))
    assert len(document["speed_rounds"]) < MOST_ROUNDS / 2
    assert sum(len(each["blocks"]) for each in document["speed_rounds"]) < MOST_BLOCKS / 2


def test_a_document_of_any_depth_and_kind_is_read_without_harm() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for document in (changed("environment.torch", deep, DOCUMENT), [], None, {"checks": 1}, {}, {"result": DOCUMENT}):
        with pytest.raises(SpecError):
            answered(document)  # type: ignore[arg-type]


def damaged(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a copy with another value somewhere."""
    values = [None, True, 0, -1, 2**62, 1e300, "", "fits", [], [1], {}, {"a": 1}]
    copied, part = copy.deepcopy(document), None
    inner: Any = copied
    while isinstance(inner, (dict, list)) and inner:
        part, key = inner, rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        inner = inner[key]
        if rng.random() < 0.2:
            break
    part[key] = rng.choice(values)  # type: ignore[index]
    return copied


def test_random_damage_is_refused_or_answered_but_never_an_error_of_ours() -> None:
    """LookupError and arithmetic of rounds that no rule called for are a refusal at the portal's door."""
    rng = random.Random(3)
    small = document_of(HonestWorker(20))
    del small["speed_rounds"][2:]
    for _ in range(400):
        try:
            json.dumps(answered(damaged(small, rng)), allow_nan=False)
        except (SpecError, ImpossibleFiguresError, LookupError, ArithmeticError):
            continue


def test_real_documents_keep_their_facts_and_most_of_what_was_printed_that_day() -> None:
    """Today's rules say some of it in other words: what other programs did, that a warning is unusual, 3,856.

    Starts of a script did not say whether they were held, nor which of their rounds were quiet: of them, less is known.
    """
    found = {name: differing(document) for name, document in originals().items()}
    of_starts = [each for each in found.pop("tune_speed") if not each.startswith(("speed", "savings."))]
    assert {field for fields in (*found.values(), of_starts) for field in fields} <= {
        *("speed.reason", "checks[0].finding", "checks[0].text", "training.rank_hosts", "training.peak"),
    }


EAGER, COMPILED = StepFigures(100 * MIB, (0.1,) * 6), StepFigures(90 * MIB, (0.05,) * 6, compile_seconds=3.0)


def compiled(*, steps: dict[str, StepFigures] | None = None, checks: tuple[Check, ...] | None = None) -> dict[str, Any]:
    spec = ValidationSpec("bert-tiny", check="compile", memory_limit_bytes=FACTS.limit_bytes)
    checks = checks or (
        *_of_figures(),
        check_of_gradients("compiled fp32", 1e-7, spec.tolerance, "those of eager mode"),
    )
    steps = steps or {"eager": EAGER, "compiled": COMPILED}
    return dict(json.loads(json.dumps(ValidationResult(spec, FACTS, checks, steps, {}, 60.0).to_dict())))


def _of_figures() -> tuple[Check, ...]:
    return (check_of_compile_time(COMPILED), check_of_speed(EAGER, COMPILED), check_of_compiled_memory(EAGER, COMPILED))


def test_a_validation_is_made_from_its_steps() -> None:
    slower = compiled(steps={"eager": EAGER, "compiled": replace(COMPILED, step_seconds=(0.2,) * 6)})
    assert differing(compiled()) == []
    assert answered(slower)["checks"][1]["verdict"] != slower["checks"][1]["verdict"]


def test_a_validation_that_was_cut_short_or_failed_keeps_why() -> None:
    failed = Check("compiles", "torch.compile compiles this training", Verdict.FAILED, "RuntimeError: no compiler")
    late = not_checked("compiles", "torch.compile compiles this training", "the time budget was spent before")
    for check in (failed, late):
        assert differing(compiled(steps={"eager": EAGER}, checks=(check,))) == []
    no_gradients = not_checked("gradients", "the gradients of fp32 agree with those of eager mode", "no loss")
    assert differing(compiled(checks=(*_of_figures(), no_gradients))) == []


def test_a_check_that_was_left_out_is_not_made_and_one_that_failed_has_failed() -> None:
    without = answered(compiled(checks=_of_figures()))
    assert (without["checks"][3]["verdict"], without["verdict"]) == ("not_checked", "warning")
    wrong = check_of_gradients("compiled fp32", 0.5, 0.001, "those of eager mode")
    forged = changed("checks.3.verdict", "passed", compiled(checks=(*_of_figures(), wrong)))
    assert answered(forged)["verdict"] == "failed"
