"""Ranks of one training are seen however they were started, and end together, whatever each of them does."""

import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import pytest

from engine.errors import CommandUntunable
from engine.facts.result import Outcome
from engine.trainings.script.judge.evidence import Evidence, WatchedStart
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.launch import Watching, start, start_ranks

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "scripts"
PYTHON = sys.executable
TORCHRUN = (PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
ACCELERATE = (PYTHON, "-m", "accelerate.commands.launch", "--num_processes", "2", "--multi_gpu")  # --cpu starts one
STARTS_RANKS = (PYTHON, str(SCRIPTS / "starts_ranks.py"), "--batch-size", "{batch_size}")
WATCHING = Watching(5, timed_steps=3)


def started(*command: str, watching: Watching = WATCHING, size: int = 8) -> tuple[list[Reading], Ended]:
    begin = partial(begin_command, TuneSpec(command, device="cpu"))
    return start(begin, size, watching, seconds=300)


def judged(*command: str) -> Evidence:
    readings, ended = started(*command)
    return WatchedStart(readings, ended, 8, limit_bytes=2**30, batch="template", honoured=()).evidence()


def why_not(*command: str) -> tuple[str, str]:
    with pytest.raises(CommandUntunable) as refused:
        judged(*command)
    return refused.value.code, str(refused.value)


@cache
def lightning_problem() -> str | None:
    done = subprocess.run([PYTHON, "-c", "import lightning"], capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def test_a_rank_whose_time_is_over_first_does_not_leave_the_other_waiting() -> None:
    command = (*TORCHRUN, str(SCRIPTS / "ranks.py"), "--rank-late", "1", "--batch-size", "{batch_size}")
    readings, ended = started(*command, watching=Watching(5, timed_steps=1_000, timed_seconds=1.0))
    assert sorted((each.rank, each.data["ended"]) for each in readings if each.has_trained) == [
        (0, "done"),
        (1, "done"),
    ]
    assert ended.timed_out_after_seconds is None


@pytest.mark.parametrize(
    "command",
    [
        pytest.param((*STARTS_RANKS, "--start", "spawn"), id="spawn"),
        pytest.param((*STARTS_RANKS, "--start", "fork"), id="fork"),
        pytest.param((*STARTS_RANKS, "--start", "processes"), id="processes"),
        pytest.param((*ACCELERATE, str(SCRIPTS / "accelerate_ranks.py"), "{batch_size}"), id="accelerate"),
    ],
)
def test_ranks_are_seen_however_they_were_started(command: tuple[str, ...]) -> None:
    evidence = judged(*command)
    assert evidence.probe.fits
    assert len(evidence.ranks) == 2
    assert min(evidence.ranks) > 200_000  # the weights, their gradients and the optimizer's state


@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn"])
def test_ranks_that_lightning_starts_are_seen(strategy: str) -> None:
    if problem := lightning_problem():
        pytest.skip(problem)
    script = (PYTHON, str(SCRIPTS / "lightning_ranks.py"), "--batch-size", "{batch_size}")
    evidence = judged(*script, "--strategy", strategy)
    assert (evidence.probe.fits, len(evidence.ranks)) == (True, 2)


def test_an_emulated_rank_holds_what_a_real_one_does_also_of_a_command_for_several_hosts() -> None:
    training = (str(SCRIPTS / "ranks.py"), "--batch-size", "{batch_size}")
    on_two = (*TORCHRUN[:3], "--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "nowhere.invalid")
    spec = TuneSpec((*on_two, *training), device="cpu", emulate_ranks=2, rank=(1,))
    once = partial(start, partial(begin_command, spec), 8)
    readings, ended = start_ranks(once, WATCHING, spec.emulated_ranks, seconds=300)
    emulated = WatchedStart(
        readings, ended, 8, limit_bytes=2**30, batch="template", honoured=(), emulated=(1,)
    ).evidence()
    assert (emulated.world_size, emulated.probe.samples_per_second) == (2, None)
    assert emulated.ranks[0] == pytest.approx(judged(*TORCHRUN, *training).ranks[1], rel=0.002)


@pytest.mark.parametrize("way", ["spawn", "fork", "processes"])
@pytest.mark.parametrize("fails", [("1", "--steps", "2"), ("0", "1", "--steps", "7")], ids=["one", "all-when-read"])
def test_a_rank_that_runs_out_of_memory_refuses_the_size_however_it_was_started(way: str, fails: tuple[str]) -> None:
    probe = judged(*STARTS_RANKS, "--start", way, "--rank-fails", *fails).probe
    assert (probe.outcome, probe.error_type) == (Outcome.OUT_OF_MEMORY, "RuntimeError")
    assert "DefaultCPUAllocator: can't allocate memory" in (probe.error_message or "")


@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_trainings_side_by_side_without_a_group_are_no_answer(way: str) -> None:
    code, message = why_not(*STARTS_RANKS, "--alone", "--start", way)
    assert (code, message.partition(" ")[0]) == ("several_trainings", "2")


def test_one_process_that_a_script_starts_is_a_training() -> None:
    assert judged(*STARTS_RANKS, "--alone", "--ranks", "1").probe.fits


def test_a_script_that_divides_its_batch_is_told_apart_and_can_be_given_it_for_each_rank() -> None:
    code, message = why_not(*STARTS_RANKS, "--divides")
    assert code == "batch_size_ignored"
    assert "each of the 2 ranks was given 4" in message
    assert "{batch_size*2}" in message
    multiplied = [part.replace("{batch_size}", "{batch_size*2}") for part in STARTS_RANKS]
    assert len(judged(*multiplied, "--divides").ranks) == 2
