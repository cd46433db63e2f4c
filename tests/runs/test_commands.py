"""Only what an administrator registered can be started, with the settings they offer."""

import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from analysis.checks import check_files
from analysis.models import Run
from analysis.runs import services
from analysis.runs.commands import command_spec, registered_commands, spec_to_start, stores_output
from analysis.runs.kinds import devices_needed
from analysis.runs.queue.placement import Placement
from analysis.workers.supervisor import engine_arguments
from engine.errors import SpecError
from tests.factories import make_card, make_claimed_estimate, make_device

pytestmark = pytest.mark.django_db

TRAIN = '[[command]]\nname = "tagger"\ncommand = ["python", "train.py", "--token=abc123", "{batch_size}"]\n'
FUNCTION = '[[command]]\nname = "tagger"\nfunction = "lab.train:make_step"\n'


@pytest.fixture
def register(settings, tmp_path: Path) -> Any:
    ticks = count(1)

    def write(text: str) -> None:
        path = tmp_path / "commands.toml"
        path.write_text(text)
        tick = next(ticks)  # two writes within a tick of the clock differ
        os.utime(path, ns=(tick, tick))
        settings.COMMANDS_FILE = path

    return write


def test_without_a_file_nothing_can_be_started(settings) -> None:
    settings.COMMANDS_FILE = None
    assert registered_commands() == {}
    with pytest.raises(SpecError, match="command: is not registered here; one of none"):
        command_spec("tagger", {})


def test_a_registered_command_is_started_with_the_settings_that_it_offers(register) -> None:
    register(TRAIN + 'settings = ["memory_limit_bytes"]\n')
    spec = command_spec("tagger", {"memory_limit_bytes": "24GiB"})
    assert (spec.model, spec.command[0], spec.memory_limit_bytes) == ("tagger", "python", 24 * 2**30)
    with pytest.raises(SpecError, match="max_batch_size: cannot be set for tagger; it takes memory_limit_bytes"):
        command_spec("tagger", {"max_batch_size": 8})


@pytest.mark.parametrize("name", ["command", "directory", "batch", "batch_in", "name"])
def test_a_request_never_changes_the_command_itself(register, name: str) -> None:
    register(TRAIN)
    with pytest.raises(SpecError, match=f"{name}: cannot be set"):
        command_spec("tagger", {name: "rm -rf /"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[command", "is no TOML file"),
        ('[[command]]\nname = "a"\n', "command 1: command: is missing, and so is function"),
        (TRAIN + 'function = "lab.train:make_step"\n', "function: stands beside a command"),
        (FUNCTION.replace("lab.train:make_step", "train.py"), "function: 'train.py' is no package.module:function"),
        (FUNCTION + "function = 1\n", "is no TOML file"),
        (FUNCTION + 'batch = "env"\n', "batch: a function is called with its batch size"),
        (FUNCTION + 'python = "python3"\n', "python: python3 is no program with an absolute path"),
        (FUNCTION + 'python = "/no/such/python"\n', "is no program with an absolute path"),
        (FUNCTION + 'settings = ["whole_run"]\n', "settings: 'whole_run' cannot be offered"),
        (TRAIN + f'python = "{sys.executable}"\n', "python: is for a function"),
        (TRAIN + 'batch = "function"\n', "batch: is of functions"),
        (TRAIN + TRAIN, "tagger is registered twice"),
        (TRAIN.replace("tagger", "Tag ger"), "must be small letters"),
        (TRAIN.replace("tagger", "bert"), "no model's id"),
        (TRAIN.replace("{batch_size}", "16"), "holds no {batch_size}"),
        (TRAIN + 'settings = ["command"]\n', "'command' cannot be offered"),
        (TRAIN + 'directory = "relative"\n', "is no folder with an absolute path"),
        (TRAIN + "colour = 1\n", "unknown key"),
        (TRAIN + 'report_output = "yes"\n', "report_output: must be true or false"),
        (TRAIN + "devices = 0\n", "devices: must be 1 to 64"),
        (TRAIN + "devices = true\n", "devices: must be a whole number"),
        (FUNCTION + "devices = 2\n", "devices: a function runs in one process"),
        (TRAIN.replace("[[command]]", "[command]"), "each command begins with [[command]]"),
        ("command = [1]\n", "each command begins with [[command]]"),
        (TRAIN.replace("[[command]]", "[[commands]]"), "'commands' is unknown"),
        (TRAIN.replace("tagger", "t\\u00e4gger"), "must be small letters"),
        (TRAIN + 'directory = "/tmp\\u0000"\n', "is no folder with an absolute path"),
        (TRAIN.replace("train.py", "train\\u0000.py"), "holds a NUL character"),
        ('[[command]]\nname = "a"\ncommand = "python train.py"\n', "must be a list of texts"),
    ],
)
def test_a_file_that_is_wrong_is_refused_at_start_with_the_place(register, text: str, problem: str) -> None:
    register(text)
    (error,) = check_files()
    assert problem in error.msg
    assert error.id == "analysis.E012"


def test_a_file_that_is_no_text_is_refused_and_no_page_breaks(register, settings) -> None:
    register("")
    settings.COMMANDS_FILE.write_bytes(b"\xff\xfe[[command]]")
    os.utime(settings.COMMANDS_FILE, ns=(99, 99))
    (error,) = check_files()
    assert "is no TOML file" in error.msg


def test_what_a_script_prints_is_stored_only_where_its_command_lets_it(register) -> None:
    stored = {"name": "tagger"}
    register(TRAIN)
    assert not stores_output(stored)
    register(TRAIN + "report_output = true\n")
    assert stores_output(stored)
    assert not stores_output({"name": "other"})
    assert not stores_output({"model": "bert"})
    register("[[command")
    assert not stores_output(stored)


def test_a_registered_function_is_a_command_that_calls_it(register) -> None:
    register(FUNCTION)
    spec = command_spec("tagger", {"current_batch_size": 4})
    assert (spec.model, spec.function, spec.program) == ("tagger", "lab.train:make_step", sys.executable)
    assert spec.arguments(4, "")[1:] == ["-m", "memorymark_step", "lab.train:make_step", "4"]
    with pytest.raises(SpecError, match="whole_run: cannot be set for tagger"):
        command_spec("tagger", {"whole_run": True})


def test_a_function_is_run_by_the_python_that_was_named(register) -> None:
    register(FUNCTION + f'python = "{sys.executable}"\n')
    assert command_spec("tagger", {}).command[0] == sys.executable


def test_a_function_that_was_changed_since_is_not_started(register) -> None:
    register(FUNCTION)
    run = made_run()
    assert (run.spec["function"], spec_to_start(run.spec).function) == ("lab.train:make_step",) * 2
    register(FUNCTION.replace("make_step", "make_other"))
    with pytest.raises(SpecError, match="was changed since this run was requested"):
        spec_to_start(run.spec)


def test_a_run_keeps_the_command_without_its_secrets(register) -> None:
    register(TRAIN)
    run = made_run()
    assert (run.model, run.precision, run.kind) == ("tagger", "", "command")
    assert "--token=***" in run.spec["command"]


def test_a_command_that_was_changed_or_removed_since_is_not_started(register) -> None:
    register(TRAIN)
    run = made_run()
    assert spec_to_start(run.spec).command[2] == "--token=abc123"
    register(TRAIN.replace("train.py", "other.py"))
    with pytest.raises(SpecError, match="was changed since this run was requested"):
        spec_to_start(run.spec)
    register(TRAIN.replace("tagger", "other"))
    with pytest.raises(SpecError, match="is not registered on this host"):
        spec_to_start(run.spec)


def test_a_command_that_offers_less_since_is_not_started_with_what_it_offered(register) -> None:
    register(TRAIN + 'settings = ["current_batch_size", "price_per_hour_usd"]\n')
    run = made_run()
    register(TRAIN + 'settings = ["whole_run"]\n')
    with pytest.raises(SpecError, match="current_batch_size: cannot be set for tagger any more"):
        spec_to_start(run.spec)
    register(TRAIN + 'settings = ["current_batch_size"]\n')
    with_the_price_of_its_device = {**run.spec, "price_per_hour_usd": 9.5}
    assert spec_to_start(with_the_price_of_its_device).price_per_hour_usd == 9.5


def test_a_command_whose_way_of_taking_the_batch_size_was_changed_is_not_started(register) -> None:
    text = TRAIN.replace(', "{batch_size}"', "")
    register(text + 'batch = "env"\n')
    run = made_run()
    assert spec_to_start(run.spec).batch == "env"
    register(text + 'batch = "hf"\n')
    with pytest.raises(SpecError, match="was changed since this run was requested"):
        spec_to_start(run.spec)


def test_a_run_needs_as_many_devices_as_its_command_is_registered_with(register) -> None:
    offers = 'settings = ["emulate_ranks"]\n'
    register(TRAIN + offers + "devices = 2\n")
    cards = [make_card(number, uuid=f"GPU-{number}") for number in range(2)]
    run = services.run_create(spec=command_spec("tagger", {}), place=Placement(kind="cuda"))
    assert run.device_count == 2
    wanted = services.claim_next(device=cards[0], owner="tester")
    run = services.set_claim(wanted=wanted, owner="tester")
    assert '"device":"cuda"' in engine_arguments(run)[2]
    register(TRAIN + offers)
    with pytest.raises(SpecError, match="tagger takes 1 devices by now, not 2: start it again"):
        engine_arguments(run)
    assert services.run_again(run=run, requested_by=None).device_count == 1


def test_one_device_is_enough_where_it_stands_in_for_the_ranks(register) -> None:
    register(TRAIN.replace("python", "torchrun") + 'settings = ["emulate_ranks"]\ndevices = 2\n')
    assert devices_needed(command_spec("tagger", {"emulate_ranks": 8})) == 1
    assert devices_needed(command_spec("tagger", {})) == 2


def test_a_command_runs_again_but_its_speeds_are_not_timed_again(register) -> None:
    register(TRAIN)
    run = made_run()
    assert services.run_again(run=run, requested_by=None).spec["command"] == run.spec["command"]
    Run.objects.filter(pk=run.pk).update(state="finished")
    run.refresh_from_db()
    with pytest.raises(SpecError, match="compares its speeds in starts of its own: run it again as a whole"):
        services.run_again(run=run, requested_by=None, is_timing_only=True)


def test_a_command_that_left_the_speeds_out_runs_again_with_them(register) -> None:
    register(TRAIN)
    given = {"current_batch_size": 4, "compare_speed": False}
    run = services.run_create(spec=command_spec("tagger", given), place=Placement(make_device()))
    assert services.run_again(run=run, requested_by=None).spec["compare_speed"] is False
    assert services.run_again(run=run, requested_by=None, compares_speeds=True).spec["compare_speed"] is True
    with pytest.raises(SpecError, match="leave the speeds out"):
        services.run_again(run=make_claimed_estimate(), requested_by=None, compares_speeds=True)


def made_run() -> Run:
    return services.run_create(spec=command_spec("tagger", {"current_batch_size": 4}), place=Placement(make_device()))
