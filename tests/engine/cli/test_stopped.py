"""What a command that is stopped says of its results: that none is stored, or where those of before are."""

import sys
from pathlib import Path
from typing import Any

import pytest

from engine.cli.printing.output import run_command
from engine.cli.reporting import Reporting
from engine.results.result import RunResult
from engine.runner import measure
from engine.spec import RunSpec
from engine.speed.reasons import STOPPED
from engine.tune.run import tune
from engine.tune.spec import TuneSpec
from engine.tune.training import TuneResult
from tests.engine.fake_worker import FakeWorker

SCRIPTS = Path(__file__).resolve().parents[1] / "tune" / "scripts"


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


class StopsAt:
    """Stops a run, as Ctrl-C does, as soon as it is in this phase."""

    def __init__(self, phase: str) -> None:
        self.phase, self.events = phase, list[dict[str, Any]]()

    def __call__(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if event.get("phase") == self.phase:
            raise KeyboardInterrupt


@pytest.mark.parametrize("phase", ["curve", "timing"])
def test_a_measurement_that_is_stopped_behind_its_certificate_gives_it_and_ends(phase: str) -> None:
    stop, kept = StopsAt(phase), list[RunResult]()
    with pytest.raises(KeyboardInterrupt):
        measure(RunSpec("bert-tiny"), stop, worker=FakeWorker(60), estimates=False, keep=kept.append)
    (result,) = kept
    assert (result.boundary.largest_batch_size, result.boundary.certified) == (60, True)
    assert result.to_dict()["speed"]["reason"] == STOPPED
    assert stop.events[-1]["event"] == "result"


def test_a_measurement_that_is_stopped_in_its_search_gives_nothing() -> None:
    kept: list[RunResult] = []
    with pytest.raises(KeyboardInterrupt):
        measure(RunSpec("bert-tiny"), StopsAt("soaking"), worker=FakeWorker(60), estimates=False, keep=kept.append)
    assert not kept


@pytest.mark.slow
def test_a_script_that_is_stopped_behind_its_certificate_gives_it_and_ends() -> None:
    kept: list[TuneResult] = []
    command = (sys.executable, str(SCRIPTS / "ten_lines.py"), "{batch_size}")
    spec = TuneSpec(command, device="cpu", memory_limit_bytes=1 << 26, max_batch_size=16)
    with pytest.raises(KeyboardInterrupt):
        tune(spec, StopsAt("curve"), keep=kept.append)
    (result,) = kept
    assert result.result.boundary.largest_batch_size == 16
    assert result.to_dict()["speed"]["reason"] == STOPPED


def test_a_result_is_shown_behind_a_run_that_is_stopped() -> None:
    shown: list[Result] = []

    def run() -> None:
        with (
            Reporting(None).run("measurement", RunSpec("bert-tiny"), lambda event: None) as run,
            run.shown(shown.append, lambda _: 0) as keep,
        ):
            keep(Result())
            assert not shown
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert len(shown) == 1


def test_an_answer_that_was_shown_is_not_denied_where_no_file_was_named(capsys) -> None:
    def command() -> int:
        with (
            Reporting(None).run("measurement", RunSpec("bert-tiny"), lambda event: None) as run,
            run.shown(lambda _: None, lambda _: 0) as keep,
        ):
            keep(Result())
            raise KeyboardInterrupt

    assert run_command(command) == 130
    assert capsys.readouterr().err == "Stopped. The answer above stands.\n"
