"""The command that races a script at the batch size of its page: only one that the command line takes."""

from types import SimpleNamespace

import pytest

from engine.cli.tune_faster import spec_of
from engine.tune.faster.command import again_command, faster_command
from engine.tune.spec import FUNCTION, TuneSpec, function_command

SCRIPT = ("python", "train.py")


@pytest.mark.parametrize("way", ["hf", "dataloader", "steps", "env"])
def test_a_way_that_is_named_is_kept_so_that_the_race_is_at_that_size(way: str) -> None:
    spec = TuneSpec(SCRIPT, batch=way, current_batch_size=64)
    said = faster_command(spec.to_dict())
    assert said == f"memorymark tune --faster --batch {way} --current-batch-size 64 -- python train.py"
    raced = spec_of(SimpleNamespace(batch=way, current_batch_size=64, tried=None), SCRIPT)
    assert (raced.command, raced.batch, raced.current_batch_size) == (spec.command, way, 64)


def test_a_config_file_keeps_its_own_size() -> None:
    spec = TuneSpec((*SCRIPT, "a.yaml"), batch="config", batch_in="a.yaml:batch")
    assert faster_command(spec.to_dict()) == "memorymark tune --faster -- python train.py a.yaml"


@pytest.mark.parametrize(
    "spec",
    [
        TuneSpec(function_command("package.module:make_step"), batch=FUNCTION),
        TuneSpec(("torchrun", "--nnodes", "2", "train.py", "{batch_size}")),
        TuneSpec(("accelerate", "launch", "--num_machines=2", "train.py", "{batch_size}")),
        TuneSpec(("torchrun", "--nproc-per-node=8", "train.py", "{batch_size}"), emulate_ranks=8),
    ],
)
def test_nothing_is_offered_for_a_function_for_several_hosts_and_for_emulated_ranks(spec: TuneSpec) -> None:
    assert faster_command(spec.to_dict()) == ""


def test_a_script_is_timed_again_with_the_limit_and_the_size_it_had() -> None:
    spec = TuneSpec(
        ("python", "train.py", "{batch_size}"), device="cpu", current_batch_size=4, memory_limit_bytes=2**28
    )
    said = "memorymark tune --report-to https://lab/ --device cpu --current-batch-size 4 --memory-limit 256MiB"
    assert again_command(spec.to_dict(), "https://lab/") == f"{said} -- python train.py '{{batch_size}}'"
