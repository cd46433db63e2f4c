"""The first hour on a card: what a command showed is kept at once, and a later call goes on behind it."""

import json
from pathlib import Path

import pytest

from benchmarks import first_hour


def test_every_answer_is_a_line_and_the_same_call_asks_only_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = [
        first_hour.Experiment("one", ("-c", "print('text'); print('{\"fits\": 8}')"), "a document"),
        first_hour.Experiment("two", ("-c", "raise SystemExit('no such card')"), "an error"),
    ]
    path = tmp_path / "answers.jsonl"
    monkeypatch.setattr("sys.argv", ["first_hour.py", "--output", str(path)])
    for known in (1, 2):
        monkeypatch.setattr(first_hour, "experiments", lambda _, known=known: asked[:known])
        first_hour.main()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["name"] for line in lines] == ["one", "two"]
    assert [line["status"] for line in lines] == [0, 1]
    assert lines[0]["seen"] == {"fits": 8}
    assert "no such card" in lines[1]["seen"]


def test_no_two_experiments_have_one_name() -> None:
    names = [experiment.name for experiment in first_hour.experiments("cuda:0")]
    assert len(names) == len(set(names))
