"""A command is checked before it is started, and hides what is secret; a launcher of several hosts is told by name."""

import sys
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import DeviceUnavailable, SpecError
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.spec import TuneSpec, function_command
from engine.trainings.script.start.environment import visible_devices
from engine.trainings.script.start.failure import describe_failure
from engine.trainings.script.start.launch import LAST_BYTES, last_lines
from engine.trainings.script.start.several_hosts import SeveralHosts, check_one_host, several_hosts

COMMAND = ("python", "train.py", "--batch-size", "{batch_size}", "--output", "{out}")
FUNCTION = function_command("lab.train:make_step")
READS = ("python", "train.py", "--config=conf/a.yaml", "./conf/a.yaml", "data=conf/a.yaml.old", "{out}")
CONFIG = {"batch": "config", "batch_in": "conf/a.yaml:train.batch_size"}


@pytest.mark.parametrize(
    ("command", "changes", "field"),
    [
        ((), {}, "command"),
        (("python", "train.py"), {}, "command"),
        (COMMAND, {"batch": "hf"}, "batch"),
        (COMMAND, {"batch": "guess"}, "batch"),
        (COMMAND, {"device": "gpu"}, "device"),
        (COMMAND, {"max_batch_size": 0}, "max_batch_size"),
        (COMMAND, {"start_batch_size": 8, "max_batch_size": 4}, "start_batch_size"),
        (COMMAND, {"current_batch_size": True}, "current_batch_size"),
        (COMMAND, {"whole_run": "no"}, "whole_run"),
        (COMMAND, {"batch": "function"}, "batch"),
        (FUNCTION, {"whole_run": True, "batch": "function"}, "whole_run"),
        (FUNCTION, {"batch": "function", "batch_in": "a.yaml:b"}, "batch_in"),
        (COMMAND, {**CONFIG, "batch_in": "conf/a.yaml:b"}, "batch"),
        (COMMAND, {**CONFIG, "batch": "template"}, "batch_in"),
        (READS, {"batch_in": "conf/a.yaml:b"}, "batch_in"),
        (READS, {"batch": "config"}, "batch_in"),
        (READS, {**CONFIG, "batch": "env"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/a.yaml"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/a.yaml:"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/a.yaml:a\nb"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": 1}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/b.yaml:train.batch_size"}, "command"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_field(command: tuple[str, ...], changes: dict, field: str) -> None:
    with pytest.raises(SpecError) as refused:
        TuneSpec(command, **changes)
    assert refused.value.field == field


def test_a_function_is_named_and_its_module_is_its_script() -> None:
    spec = TuneSpec(FUNCTION, batch="function")
    assert (spec.model, spec.to_dict()["function"]) == ("lab.train:make_step",) * 2
    assert spec.files == ("lab/train.py", "lab/train/__init__.py")
    assert TuneSpec.from_dict({"command": list(FUNCTION), "batch": "function"}) == spec


def test_a_python_that_cannot_be_found_is_refused_by_its_name() -> None:
    for spec, field in ((function_command("a:b", "/no/python"), "python"), (("/no/python", "{batch_size}"), "command")):
        with pytest.raises(SpecError) as refused:
            TuneSpec(spec, batch="function" if field == "python" else "template").check_program()
        assert refused.value.field == field


@pytest.mark.parametrize(
    ("command", "is_refused"),
    [
        (("python", "nope.py"), True),
        (("python3.11", "-u", "-OO", "nope.py"), True),
        (("python", "no_folder"), True),
        (("python", "-uB", "train.py"), False),
        (("python", "train.py", "--config", "nope.py"), False),
        (("python", "-m", "nope"), False),
        (("python", "-X", "dev", "nope.py"), False),  # whether an option has a value is Python's to know
        (("python", "-c", "print(1)"), False),
        (("python", "{out}/nope.py"), False),
        (("torchrun", "nope.py"), False),
        (("python",), False),
    ],
)
def test_a_script_that_is_not_there_is_refused(command: tuple[str, ...], is_refused: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    spec = TuneSpec((*command, "{batch_size}"), directory=str(tmp_path))
    if not is_refused:
        return spec.check_script()
    with pytest.raises(SpecError, match=f"^command: '{command[-1]}' is not in {tmp_path}$"):
        spec.check_script()


def test_the_placeholders_are_filled_in_and_other_braces_stay() -> None:
    spec = TuneSpec((*COMMAND, '{"lr": 1}'))
    assert spec.arguments(40, "/o") == ["python", "train.py", "--batch-size", "40", "--output", "/o", '{"lr": 1}']


def test_a_multiple_of_the_batch_size_is_filled_in_for_a_script_that_divides_by_its_ranks() -> None:
    spec = TuneSpec(("python", "train.py", "total={batch_size*2}", "--each={batch_size}", "{batch_size*x}"))
    assert spec.arguments(40, "/o")[2:] == ["total=80", "--each=40", "{batch_size*x}"]
    with pytest.raises(SpecError, match="holds no"):
        TuneSpec(("python", "train.py", "{batch_size*0}"))


def test_a_copy_takes_the_place_of_the_config_file_in_the_command_and_not_in_what_is_run_by_hand() -> None:
    spec = TuneSpec(READS, **CONFIG)
    assert spec.arguments(40, "/o", "c.yaml")[2:] == ["--config=c.yaml", "c.yaml", "data=conf/a.yaml.old", "/o"]
    by_hand = describe_failure(spec, 40, Ended())
    assert by_hand.endswith("/a.yaml data=conf/a.yaml.old OUT\n  with train.batch_size: 40 in conf/a.yaml")
    assert TuneSpec.from_dict({"command": list(READS), **CONFIG}) == spec
    with pytest.raises(SpecError, match="command: names no b.yaml; --batch-in puts a copy in its place"):
        TuneSpec(READS, batch="config", batch_in="b.yaml:a")


def test_a_command_whose_config_file_was_hidden_as_a_secret_can_be_read() -> None:
    assert TuneSpec(("python", "train.py", "--auth=***"), **CONFIG).arguments(8, "/o")[2] == "--auth=***"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (COMMAND, "train.py"),
        (("torchrun", "--nproc-per-node", "2", "x/run_clm.py", "{batch_size}"), "run_clm.py"),
        (("python", "-m", "lab.train", "{batch_size}"), "lab.train"),
        (("./train", "{batch_size}"), "train"),
        (("./train", "{batch_size*2}/a.py"), "train"),
    ],
)
def test_a_command_is_named_after_its_script(command: tuple[str, ...], name: str) -> None:
    assert TuneSpec(command).model == name


def test_secrets_of_a_command_are_hidden_in_documents() -> None:
    said = TuneSpec(("env", "HF_TOKEN=abc", "python", "t.py", "{batch_size}")).to_dict()["command"]
    assert said == ["env", "HF_TOKEN=***", "python", "t.py", "{batch_size}"]


SCRIPT = ("train.py", "--bs", "{batch_size}")
RUN, LAUNCH = ("python", "-m", "torch.distributed.run"), ("accelerate", "launch")


@pytest.mark.parametrize(
    ("command", "environment", "expected"),
    [
        (("python", "train.py", "--nnodes", "2"), {}, None),
        (("torchrun", "--nproc-per-node", "2", *SCRIPT), {}, None),
        (("torchrun", "--nnodes", "1", *SCRIPT, "--nnodes", "4"), {}, None),
        (("torchrun", "--nnodes=1:1", "-m", "train", "--nnodes=4"), {}, None),
        (("torchrun", "--nnodes", "two", *SCRIPT), {}, None),  # which torchrun itself says
        (("/usr/bin/torchrun", "--nnodes=2", "--nproc_per_node=8", *SCRIPT), {}, SeveralHosts("--nnodes 2", 16)),
        ((*RUN, "--nnodes", "2:2", *SCRIPT), {}, SeveralHosts("--nnodes 2:2", 2)),
        ((*RUN, "--nnodes", "1:4", "--nproc-per-node", "8", *SCRIPT), {}, SeveralHosts("--nnodes 1:4", None)),
        (("torchrun", "--nnodes", "2", "--nproc-per-node", "gpu", *SCRIPT), {}, SeveralHosts("--nnodes 2", None)),
        (("torchrun", *SCRIPT), {"PET_NNODES": "3", "PET_NPROC_PER_NODE": "8"}, SeveralHosts("PET_NNODES=3", 24)),
        (("torchrun", "--nnodes", "1", *SCRIPT), {"PET_NNODES": "3"}, None),
        ((*LAUNCH, "--num_machines=1", *SCRIPT), {}, None),
        ((*LAUNCH, "--num_machines", "2", "--num_processes", "16", *SCRIPT), {}, SeveralHosts("--num_machines 2", 16)),
        ((*LAUNCH, "--num-machines=2", *SCRIPT), {}, SeveralHosts("--num-machines 2", None)),
    ],
)
def test_the_options_of_a_launcher_tell_its_hosts_and_ranks(command, environment, expected) -> None:
    assert several_hosts(command, environment) == expected


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("torchrun", "--nnodes", "2", "--nproc-per-node", "8", *SCRIPT), "tune --emulate-ranks 16 -- torchrun ..."),
        ((*LAUNCH, "--num_machines", "2", *SCRIPT), "tune --emulate-ranks N -- accelerate ..."),
        (("srun", "-N2", "python", *SCRIPT), "put it in front: srun --nodes 1 --ntasks 1"),
    ],
)
def test_several_hosts_are_answered_with_the_command_for_one_device(command, said) -> None:
    with pytest.raises(SpecError, match="command: ") as refused:
        check_one_host(command, {})
    assert said in str(refused.value)


@pytest.mark.parametrize("more", [(), ("--faster",)])
def test_nothing_starts_on_several_hosts_wherever_they_are_named(
    more, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kubernetes names them in the environment."""
    monkeypatch.setenv("PET_NNODES", "2")
    (tmp_path / "train.py").touch()
    command = (sys.executable, "-m", "torch.distributed.run", str(tmp_path / "train.py"), "{batch_size}")
    assert main(["tune", *more, "--", *command]) == 2
    assert "PET_NNODES=2: several hosts are not measured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "visible", "expected"),
    [
        ("auto", None, {}),
        ("cpu", "0,1", {"CUDA_VISIBLE_DEVICES": ""}),
        ("cuda", None, {}),
        ("cuda:1", None, {"CUDA_VISIBLE_DEVICES": "1"}),
        ("cuda:1", "2, 5", {"CUDA_VISIBLE_DEVICES": "5"}),
    ],
)
def test_a_command_sees_the_device_that_its_caller_counts_so(device: str, visible: str | None, expected: dict) -> None:
    assert visible_devices(device, visible) == expected


def test_a_device_that_the_caller_does_not_see_is_refused() -> None:
    with pytest.raises(DeviceUnavailable, match="CUDA_VISIBLE_DEVICES has 1"):
        visible_devices("cuda:1", "7")


def test_the_last_lines_of_a_failed_start_are_those_of_the_script(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 5, in <module>\n'
        "KeyError: 'O'\n\n"
        "[W1124 14:38:25.2330 CPUAllocator.cpp:245] Memory block of unknown size was allocated before the profiling "
        "started, profiler results will not include the deallocation event\n"
        "USDT:2026-11-24 14:38:26 28263:28263 SyncActivityProfilerHandler.cpp:59] profiler_stop\n"
    )
    assert last_lines(log) == (
        "Traceback (most recent call last):",
        '  File "train.py", line 5, in <module>',
        "KeyError: 'O'",
    )


def test_a_line_whose_beginning_is_not_there_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("token " + "x" * LAST_BYTES + "\nthe last line\n")
    assert last_lines(log) == ("the last line",)
