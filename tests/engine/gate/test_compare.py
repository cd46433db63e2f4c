"""What is a regression, what is not, and what is not known."""

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from engine.errors import SpecError
from engine.facts.provenance.parse import OF_ONE_RUN
from engine.facts.result import Point, Reason
from engine.gate.changes import changes
from engine.gate.compare import Demands, Row, Verdict, compare
from engine.gate.report import is_regression, junit, lines, markdown
from engine.questions.documents.measured import Measured
from engine.text.units import GIB, MIB
from tests.engine.honest_worker import HonestWorker, document_of

DOCUMENT = document_of(HonestWorker(100))
BASE = Measured.of(DOCUMENT, "baseline")


def of_speed(value: float, spread: float = 1.05) -> Measured:
    assert BASE.recommended is not None
    low, high = value / spread, value * spread
    point = replace(
        BASE.recommended, samples_per_second=value, samples_per_second_low=low, samples_per_second_high=high
    )
    return replace(BASE, recommended=point)


def row(name: str, now: Measured, baseline: Measured | None = BASE, **demands: Any) -> Row:
    return next(r for r in compare(now, baseline, Demands(**demands)) if r.name.startswith(name))


def of_size(largest: int | None, **fields: Any) -> Measured:
    return replace(BASE, boundary=replace(BASE.boundary, largest_batch_size=largest, **fields))


def test_a_result_is_no_regression_of_itself() -> None:
    rows = compare(BASE, BASE, Demands())
    assert [r.verdict for r in rows] == [Verdict.PASSED] * 3
    assert not is_regression(rows)


@pytest.mark.parametrize(
    ("largest", "fail_below", "verdict"),
    [
        (95, 0.05, Verdict.PASSED),
        (94, 0.05, Verdict.REGRESSED),
        (99, 0.0, Verdict.REGRESSED),
        (200, 0.05, Verdict.PASSED),
        (None, 0.05, Verdict.UNKNOWN),
    ],
)
def test_the_batch_size_is_exact(largest: int | None, fail_below: float, verdict: Verdict) -> None:
    assert row("largest", of_size(largest), fail_below=fail_below).verdict is verdict


@pytest.mark.parametrize(("figure", "least"), [("largest", None), ("batch size demanded", 11)])
def test_a_search_that_ended_early_does_not_show_a_smaller_limit(figure: str, least: int | None) -> None:
    found = row(figure, of_size(10, certified=False, reason=Reason.TIME_BUDGET), min_batch_size=least)
    assert (found.verdict, found.reason) == (
        Verdict.UNKNOWN,
        "the search ended before its limit was known (time budget)",
    )


LOWER_BOUND = {"certified": False, "reason": Reason.TIME_BUDGET}


@pytest.mark.parametrize(
    ("now", "baseline", "verdict"),
    [
        (of_size(39, **LOWER_BOUND), of_size(22, **LOWER_BOUND), Verdict.UNKNOWN),
        (of_size(22, **LOWER_BOUND), of_size(39, **LOWER_BOUND), Verdict.UNKNOWN),
        (of_size(39, **LOWER_BOUND), of_size(22), Verdict.PASSED),
        (of_size(22), of_size(39, **LOWER_BOUND), Verdict.REGRESSED),
        (of_size(39), of_size(22, **LOWER_BOUND), Verdict.UNKNOWN),
    ],
)
def test_lower_bounds_are_judged_only_where_they_decide(now: Measured, baseline: Measured, verdict: Verdict) -> None:
    assert row("largest", now, baseline).verdict is verdict


def test_a_lower_bound_is_written_as_one() -> None:
    found = row("largest", of_size(39, **LOWER_BOUND), of_size(22))
    assert (found.now, found.baseline, found.reason) == ("at least 39", "22", "decided by the lower bound")


def test_a_size_that_trained_meets_a_demand_although_the_search_ended_early() -> None:
    found = of_size(10, certified=False, reason=Reason.TIME_BUDGET)
    assert row("batch size demanded", found, None, min_batch_size=10).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("now", "spread", "verdict"),
    [
        (96.0, 1.001, Verdict.PASSED),  # certain, and less than 5 %
        (90.0, 1.001, Verdict.REGRESSED),
        (90.0, 1.09, Verdict.PASSED),  # the intervals meet
        (70.0, 1.09, Verdict.REGRESSED),
        (140.0, 1.001, Verdict.PASSED),
    ],
)
def test_a_speed_is_worse_only_where_the_intervals_allow_to_say_so(now: float, spread: float, verdict: Verdict) -> None:
    assert row("samples", of_speed(now, spread), of_speed(100.0, spread)).verdict is verdict


def test_a_speed_without_an_interval_is_not_known() -> None:
    point = Point(16, 1.0, 1.0, None, None, None)
    assert row("samples", replace(BASE, recommended=point)).verdict is Verdict.UNKNOWN
    assert row("samples", replace(BASE, recommended=None)).verdict is Verdict.UNKNOWN


def test_memory_is_compared_at_the_largest_size_of_both() -> None:
    doubled = (p.peak_allocated_bytes and 2 * p.peak_allocated_bytes for p in BASE.probes)
    probes = (replace(p, peak_allocated_bytes=peak) for p, peak in zip(BASE.probes, doubled, strict=True))
    heavier = replace(BASE, probes=tuple(probes))
    assert (row("memory", heavier).verdict, row("memory", heavier).reason) == (
        Verdict.REGRESSED,
        "of batch 100: +100.0%",
    )
    assert row("memory", replace(BASE, probes=())).verdict is Verdict.UNKNOWN


def test_demands_need_no_baseline() -> None:
    at_4 = BASE.points()[4].memory_bytes or 0
    assert row("batch size demanded", BASE, None, min_batch_size=100).verdict is Verdict.PASSED
    assert row("batch size demanded", BASE, None, min_batch_size=101).verdict is Verdict.REGRESSED
    assert row("memory allowed", BASE, None, max_memory_bytes=at_4).verdict is Verdict.PASSED
    assert row("memory allowed", BASE, None, max_memory_bytes=at_4 - 1).verdict is Verdict.REGRESSED
    assert row("memory allowed", replace(BASE, probes=()), None, max_memory_bytes=GIB).verdict is Verdict.UNKNOWN


def test_another_workload_or_card_is_refused_with_the_fields_that_differ() -> None:
    other = replace(BASE, spec={**BASE.spec, "sequence_length": 64}, device=replace(BASE.device, name="Another"))
    with pytest.raises(SpecError, match=r"baseline: is of another .*: spec\.sequence_length, device\.name"):
        compare(BASE, other, Demands())


def test_what_is_other_than_in_the_baseline_is_suspected_the_likeliest_first() -> None:
    before = replace(BASE, environment={"torch": "2.12.0", "python": "3.11.7", "run_key": "a", "host": "one"})
    now = replace(
        BASE,
        environment={"torch": "2.13.0", "python": "3.12.1", "run_key": "b", "host": "two"},
        spec={**BASE.spec, "precision": "bf16", "price_per_hour_usd": 9.0},
        device=replace(BASE.device, driver="580.65"),
    )
    assert [each.text for each in changes(now, before)] == [
        "driver: none -> 580.65",
        "torch: 2.12.0 -> 2.13.0",
        "precision: fp32 -> bf16",
        "python: 3.11.7 -> 3.12.1",
    ]
    assert changes(before, before) == []


def test_another_job_container_and_host_are_not_suspected() -> None:
    lasting = {"torch": "2.13.0", "slurm_partition": "gpu"}
    before, now = (
        replace(BASE, environment={**lasting, **dict.fromkeys((*OF_ONE_RUN, "host"), name)}) for name in ("a", "b")
    )
    assert changes(now, before) == []


def test_no_text_of_a_document_leaves_its_cell_or_its_attribute() -> None:
    name = "a|b <img src=x>\n# heading \x00\x1b"
    rows = compare(of_size(10), BASE, Demands())
    suspects = changes(replace(BASE, environment={"torch": name}), BASE)
    table = markdown(name, rows, suspects)
    assert "<img" not in table
    assert "\n# heading" not in table
    assert "a\\|b" in table
    assert {line.count("|") - line.count("\\|") for line in table.splitlines() if line.startswith("| ")} == {6}
    suite = ElementTree.fromstring(junit(name, rows, suspects))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "0")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "img src" in (failure.text or "")
    assert lines(rows, [])[-1] == "No recorded version or setting is other than in the baseline."


@pytest.mark.parametrize("document", [{}, {"result": {"spec": {}}}, {**DOCUMENT, "probes": "none"}, {"estimates": []}])
def test_what_is_no_result_of_a_measurement_is_named(document: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="result: is no result of a measurement"):
        Measured.of(document, "result")


def test_a_result_file_and_a_run_of_the_portal_are_read_alike() -> None:
    wrapped = {"exit_status": 0, "result": json.loads(json.dumps(DOCUMENT))}
    assert Measured.of(wrapped, "result") == BASE
    assert BASE.device.limit_bytes == 400 * MIB
