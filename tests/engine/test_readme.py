"""The Python of the README runs as it stands; the worker alone is a fake one with a made-up memory curve."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

import engine
from tests.engine.fake_worker import FakeWorker

README = Path(__file__).resolve().parents[2] / "README.md"


def python_of_readme() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_script_that_the_readme_tunes_is_the_one_that_a_test_tunes() -> None:
    tuned = Path(__file__).parent / "tune" / "scripts" / "ten_lines.py"
    assert python_of_readme()[0] == tuned.read_text().partition("\n\n")[2]


def test_the_lines_of_python_in_the_readme_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    _, source = python_of_readme()
    monkeypatch.setattr(engine, "measure", partial(engine.measure, worker=FakeWorker(60), estimates=False))
    exec(compile(source, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("largest 60, certified: True\nrecommended ")
