"""What a start may see and left behind; a launcher of several hosts is told by its options, and answered by name."""

import sys
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import DeviceUnavailable, SpecError
from engine.tune.start.environment import visible_devices
from engine.tune.start.launch import LAST_BYTES, last_lines
from engine.tune.start.several_hosts import SeveralHosts, check_one_host, several_hosts

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
