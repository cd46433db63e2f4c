"""What a command that is stopped says of its results: that none is stored, or where those of before are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.cli.printing.output import run_command
from engine.cli.reporting import Reporting
from engine.spec import RunSpec


class Result:
    def to_dict(self) -> dict[str, Any]:
        return {"spec": {}, "device": {}, "environment": {}}


def stopped(error: type[BaseException], reporting: Reporting, *, results: int) -> int:

    def command() -> int:
        for number in range(results + 1):
            with reporting.run("measurement", RunSpec("bert-tiny"), lambda event: None) as run:
                if number == results:
                    raise error(143)
                run.keep(0, Result())
        return 0

    return run_command(command)


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (SystemExit, 143)])
def test_without_a_result_it_says_that_none_is_stored(
    error: type[BaseException], status: int, tmp_path, capsys
) -> None:
    assert stopped(error, Reporting(None, result_file=tmp_path / "result.json"), results=0) == status
    assert capsys.readouterr().err == "Stopped. No result is stored.\n"


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (SystemExit, 143)])
def test_results_that_were_stored_by_then_are_named(error: type[BaseException], status: int, tmp_path, capsys) -> None:
    path: Path = tmp_path / "result.json"
    assert stopped(error, Reporting(None, result_file=path), results=2) == status
    assert capsys.readouterr().err == f"Stopped. Stored by then: {path}.\n"
    assert path.exists()


def test_a_result_that_goes_nowhere_but_to_the_screen_is_not_stored(capsys) -> None:
    assert stopped(KeyboardInterrupt, Reporting(None), results=1) == 130
    assert capsys.readouterr().err == "Stopped. No result is stored.\n"


def test_a_reported_run_that_is_stopped_names_its_file(tmp_path, capsys) -> None:
    def command() -> int:
        with reporting.run("measurement", RunSpec("bert-tiny"), lambda event: None) as run:
            run.keep(0, Result())
            raise KeyboardInterrupt

    reporting = Reporting("http://127.0.0.1:9", runs_dir=tmp_path)
    assert run_command(command) == 130
    (path,) = tmp_path.glob("*.json")
    assert capsys.readouterr().err.splitlines()[-1] == f"Stopped. Stored by then: {path}."
