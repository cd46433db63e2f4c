"""A launcher of several hosts is told by its options, and answered by name."""

import sys
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import SpecError
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
