"""The first hour on a card: what is kept, what is gone on with, what is refused, and the page made of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import first_hour
from benchmarks.card_experiments.answers import PUBLISHED, ROOT, Answers, Refused, check_is_not_published
from benchmarks.card_experiments.experiments import BY_NUMBER
from benchmarks.card_experiments.report import BEGIN, END, into_page, report
from benchmarks.card_experiments.setting import Part
from benchmarks.card_experiments.watching import soak_memory, summary_of_clocks
from tests.benchmarks.synthetic_card import machine, seen

CONSTANTS, REPEATS, DRIVER_COUNT = BY_NUMBER[2], BY_NUMBER[6], BY_NUMBER[8]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that were run, in order. No card is here: each sees what is expected of an H100."""
    names: list[str] = []

    def run_part(part: Part, *_: Any) -> dict[str, Any]:
        names.append(part.name)
        return seen()[2 if "calibrate" in part.command else 6][part.name]

    monkeypatch.setattr(first_hour, "run_part", run_part)
    return names


def hour(path: Path, seconds: float = 3600, **fields: Any) -> first_hour.FirstHour:
    return first_hour.FirstHour("cuda:0", machine(**fields), Answers(path), time.monotonic() + seconds, False)


def test_an_answer_is_a_line_with_all_that_belongs_to_it(ran: list[str], tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    assert hour(path).answer(CONSTANTS) == "as expected"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["part", "part", "part", "answer"]
    answer = lines[-1]
    assert (answer["number"], answer["name"], answer["stand_in"]) == (2, "the card's own constants", False)
    assert answer["commands"] == ["python -m engine calibrate cuda:0 --json"] * 3
    assert "33,554,432" in answer["expected"]
    assert "33,554,432" in answer["seen"]
    assert answer["machine"]["gpu"] == "NVIDIA H100 80GB HBM3"


def test_the_next_call_runs_only_what_is_missing(ran: list[str], tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    hour(path).answer(CONSTANTS)
    whole = path.read_text()
    first, rest = whole.split("\n", 1)
    path.write_text(first + "\n" + rest[:50])  # killed while it wrote
    hour(path).answer(CONSTANTS)
    assert ran == ["run 1", "run 2", "run 3", "run 2", "run 3"]
    assert path.read_text().startswith(first + "\n")
    assert len(Answers(path).lines) == 4
    hour(path).answer(CONSTANTS)
    assert len(ran) == 5


def test_a_part_is_not_begun_that_should_take_longer_than_is_left(ran: list[str], tmp_path: Path) -> None:
    call = hour(tmp_path / "answers.jsonl", seconds=300)
    call.answer(CONSTANTS)
    with pytest.raises(first_hour.TimeIsUp):
        call.answer(REPEATS)
    assert ran == ["run 1", "run 2", "run 3"]


def test_the_first_part_of_a_call_is_begun_whatever_is_left(ran: list[str], tmp_path: Path) -> None:
    with pytest.raises(first_hour.TimeIsUp):
        hour(tmp_path / "answers.jsonl", seconds=300).answer(REPEATS)
    assert ran == ["run 1"]


def test_a_part_that_was_cut_is_the_first_of_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = {"error": "had not ended after 9 s", "timed_out": True}
    outcomes = [seen()[2]["run 1"], cut, cut, seen()[2]["run 3"]]
    monkeypatch.setattr(first_hour, "run_part", lambda *_: outcomes.pop(0))
    path = tmp_path / "answers.jsonl"
    with pytest.raises(first_hour.TimeIsUp):
        hour(path).answer(CONSTANTS)
    assert set(Answers(path).parts(2)) == {"run 1"}
    assert hour(path).answer(CONSTANTS) == "could not be run"
    assert Answers(path).answers()[2]["meaning"] == "run 2: had not ended after 9 s"


def test_an_experiment_without_its_foundation_is_answered_with_the_reason(ran: list[str], tmp_path: Path) -> None:
    call = hour(tmp_path / "answers.jsonl")
    assert call.answer(DRIVER_COUNT) == "could not be run"
    assert "experiment 6" in call.answers.answers()[8]["meaning"]


def test_a_forgotten_answer_is_found_anew(ran: list[str], tmp_path: Path) -> None:
    call = hour(tmp_path / "answers.jsonl")
    call.answer(CONSTANTS)
    call.answers.append({"kind": "forgotten", "number": 2, **call._about()})
    assert 2 not in call.answers.answers()
    call.answer(CONSTANTS)
    assert len(ran) == 6


def test_answers_of_another_card_are_not_gone_on_with(ran: list[str], tmp_path: Path) -> None:
    call = hour(tmp_path / "answers.jsonl")
    call.answer(CONSTANTS)
    call.answers.check(machine(uuid="GPU-another-one"), "full")  # a card of the same kind
    with pytest.raises(Refused, match="A100"):
        call.answers.check(machine(gpu="NVIDIA A100-SXM4-80GB"), "full")
    with pytest.raises(Refused, match="quick"):
        call.answers.check(machine(), "quick")


@pytest.mark.parametrize("folder", PUBLISHED)
def test_figures_of_the_stand_in_are_not_published(folder: Path) -> None:
    with pytest.raises(Refused, match="stand-in"):
        check_is_not_published(folder / "x.jsonl", is_stand_in=True)
    check_is_not_published(folder / "x.jsonl", is_stand_in=False)


def test_the_page_has_a_row_for_every_experiment_and_names_a_synthetic_card(ran: list[str], tmp_path: Path) -> None:
    call = hour(tmp_path / "answers.jsonl", is_stand_in=True)
    call.is_quick = True
    call.answer(CONSTANTS)
    text = report([call.answers])
    assert "MADE UP" in text
    assert "| 2 | the card's own constants |" in text
    assert "says nothing on the stand-in" in text
    assert text.count("| not run yet |") == 12


def test_a_report_of_the_stand_in_stays_out_of_the_docs(
    ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answers.jsonl"
    call = hour(path, is_stand_in=True)
    call.answer(CONSTANTS)
    page = ROOT / "docs" / "figures.md"
    before = page.read_text()
    monkeypatch.setattr("sys.argv", ["first_hour.py", "--output", str(path), "--report", str(page)])
    assert first_hour.main() == first_hour.REFUSED
    assert "stand-in" in capsys.readouterr().err
    assert page.read_text() == before


def test_the_page_of_figures_says_what_the_kept_answers_say() -> None:
    files = [Answers(path) for path in sorted(PUBLISHED[0].glob("first_hour.*.jsonl"))]
    page = (ROOT / "docs" / "figures.md").read_text()
    assert into_page(page, report(files)) == page
    assert not any(line["stand_in"] for answers in files for line in answers.lines)


def test_a_page_without_marks_is_left_alone() -> None:
    assert into_page(f"a\n{BEGIN}\nold\n{END}\nb\n", "new") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb\n"
    with pytest.raises(ValueError, match="first_hour: begin"):
        into_page("a page\n", "new")


def test_clocks_are_summed_up_by_what_was_told() -> None:
    known = {
        "sm_clock_highest_mhz": None,
        "power_watts": 300.0,
        "temperature_celsius": 60,
        "utilization_fraction": 1.0,
    }
    readings = [
        {**known, "sm_clock_mhz": 1200, "throttle_reasons": ["sw_power_cap"]},
        {**known, "sm_clock_mhz": 1980, "throttle_reasons": []},
    ]
    summed = summary_of_clocks(readings)
    assert summed is not None
    assert summed["sm_clock_mhz"] == [1200, 1590, 1980]
    assert summed["sm_clock_highest_mhz"] is None
    assert summed["throttle_reasons"] == {"sw_power_cap": 0.5}
    assert summary_of_clocks([]) is None


def test_hidden_processes_leave_the_count_of_the_card_as_it_was_last() -> None:
    hidden = {"foreign_processes": ({"pid": 7, "used_bytes": None},), "foreign_used_bytes": 5_000}
    told = {"foreign_processes": ({"pid": 7, "used_bytes": 4_000},), "foreign_used_bytes": 4_500}
    assert soak_memory([hidden, {}])["process_bytes_in_soak"] is None
    assert soak_memory([hidden, told]) == {
        "process_bytes_in_soak": 4_000,
        "card_bytes_in_soak": 4_500,
        "readings_in_soak": 2,
    }
