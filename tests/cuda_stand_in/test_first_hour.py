"""The first hour on a card, on made-up ones: cheap experiments from end to end, and going on after a cut."""

import json
import sys
from pathlib import Path

from tests.cuda_stand_in.cards import ROOT, Cards

SCRIPT = str(ROOT / "benchmarks" / "first_hour.py")


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_cheapest_experiments_run_and_go_on_where_they_were_cut(cards: Cards, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    command = (sys.executable, SCRIPT, "--only", "3", "4", "--output", str(path))
    first = cards.run(*command)
    assert first.returncode == 0, first.stderr
    lines = _lines(path)
    assert [(line["kind"], line["number"]) for line in lines] == [
        *[("part", 3), ("answer", 3)],
        *[("part", 4)] * 3,
        ("answer", 4),
    ]
    assert all(line["stand_in"] and line["scale"] == "quick" for line in lines)
    assert lines[1]["verdict"] == "says nothing on the stand-in"
    assert lines[-1]["verdict"] == "as expected"

    kept = path.read_text().splitlines(keepends=True)
    path.write_text("".join(kept[:4]) + kept[4][:200])
    again = cards.run(*command)
    assert again.returncode == 0, again.stderr
    assert path.read_text().splitlines(keepends=True)[:4] == kept[:4]
    assert [line.get("part") for line in _lines(path)[4:]] == ["expandable", None]

    page = cards.run(sys.executable, SCRIPT, "--output", str(path), "--report")
    assert "MADE UP" in page.stdout
    assert "| 4 | the allocator, event for event |" in page.stdout


def test_synthetic_figures_are_not_stored_with_the_results(cards: Cards) -> None:
    path = ROOT / "benchmarks" / "results" / "first_hour.made-up.jsonl"
    refused = cards.run(sys.executable, SCRIPT, "--only", "3", "--output", str(path))
    assert refused.returncode == 2
    assert "stand-in" in refused.stderr
    assert not path.exists()
