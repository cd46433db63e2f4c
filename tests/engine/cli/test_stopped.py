"""What a command says that is stopped, or whose batch size was refused: what is stored, and what to change."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cli.main import main
from engine.cli.printing.output import run_command
from engine.cli.printing.refused import change_lines_after
from engine.cli.reporting import Reporting
from engine.errors import SpecError
from engine.facts.not_compared import NotCompared
from engine.facts.result import DeviceFacts, RunResult
from engine.questions.size import measure
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from engine.trainings.script.result import TuneResult
from engine.trainings.script.run import tune
from engine.trainings.script.spec import TuneSpec
from tests.engine.fake_worker import FakeWorker
from tests.engine.settings.catalog.hostile_configs import LLAMA
from tests.factories import make_result, make_result_that_does_not_fit

SCRIPTS = Path(__file__).resolve().parents[1] / "trainings" / "script" / "scripts"
FOR_PEOPLE = SimpleNamespace(json=False, events=False)


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
    assert result.to_dict()["speed"]["why"] == NotCompared.STOPPED
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
    assert result.to_dict()["speed"]["why"] == NotCompared.STOPPED


def test_a_result_is_shown_behind_a_run_that_is_stopped() -> None:
    shown: list[Result] = []

    def run() -> None:
        with (
            Reporting(None).run("measurement", RunSpec("bert-tiny"), lambda event: None) as run,
            run.shown(FOR_PEOPLE, shown.append) as keep,
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
            run.shown(FOR_PEOPLE, lambda _: None) as keep,
        ):
            keep(Result())
            raise KeyboardInterrupt

    assert run_command(command) == 130
    assert capsys.readouterr().err == "Stopped. The answer above stands.\n"


def test_a_batch_that_fits_needs_no_change():
    assert change_lines_after(make_result()) == []


def test_a_refused_batch_names_a_command_that_parses(capsys):
    refused = make_result_that_does_not_fit()
    device = DeviceFacts("cpu", "cpu", "A CPU", 8 * GIB, limit_bytes=4 * GIB)
    spec = RunSpec("bert-tiny", precision="bf16", gradient_checkpointing=True, sequence_length=64)
    (line,) = change_lines_after(replace(refused, spec=spec, device=device))
    command = line.partition("estimate ")[2]
    assert command == (
        "bert-tiny --gpu cpu --memory-limit 4GiB --sequence-length 64 --precision bf16 "
        "--gradient-checkpointing --batch-size 16 --what-to-change"
    )
    # up to the batch size nothing is wrong with it: one that is out of range is refused by its name
    status = main(["estimate", *command.replace("--batch-size 16", "--batch-size 0").split()])
    assert status == SpecError.exit_status
    assert "--batch-size: 0" in capsys.readouterr().err


def test_the_command_for_a_model_of_a_config_reads_it_from_its_file(tmp_path, capsys):
    path = tmp_path / "my config.json"
    path.write_text(json.dumps(LLAMA))
    spec = RunSpec("config", config=LLAMA, task="text-generation", config_parameters=1_000_000, precision="bf16")
    device = DeviceFacts("cpu", "cpu", "A CPU", 8 * GIB, limit_bytes=4 * GIB)
    (line,) = change_lines_after(replace(make_result_that_does_not_fit(), spec=spec, device=device))
    words = [str(path) if word == "FILE" else word for word in shlex.split(line.partition("engine ")[2])]
    # up to the card nothing is wrong with it, and so the model is not built
    assert main([*words, "--memory", "24GiB"]) == SpecError.exit_status
    assert capsys.readouterr().err.startswith("error: --gpu: give a GPU with --gpu")
    assert words[3:7] == ["--task", "text-generation", "--gpu", "cpu"]


def test_a_card_is_named_as_the_catalogue_has_it():
    refused = make_result_that_does_not_fit()
    device = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-40GB", 42_298_834_944, compute_capability="8.0")
    (line,) = change_lines_after(replace(refused, device=device))
    assert "--gpu a100-40gb --" in line
