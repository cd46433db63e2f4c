"""One process stands in for ranks of many: which are started, what they show, and what is refused by its name."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from engine.describe.ranks import describe_emulation, rank_rows
from engine.errors import CommandUntunable, SpecError
from engine.facts.figure_kinds import ASSUMED, EMULATED
from engine.facts.not_compared import NotCompared
from engine.questions.answers import ImpossibleFiguresError
from engine.questions.kinds import answered
from engine.settings.ranks.emulation import EmulatedRank
from engine.text.units import MIB
from engine.trainings.script import run
from engine.trainings.script.notes.progress import Ended, LastSeen
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.result import TuneResult
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.launch import Watching
from tests.engine.questions.answers.answers import differing
from tests.engine.trainings.script.test_evidence import reading, steps

TORCHRUN = ("torchrun", "--nproc-per-node", "8", "train.py", "--bs", "{batch_size}")
HOOK = Path(run.__file__).parent / "hook"


def as_rank(started: list[tuple[int, int]], _: object, size: int, watching: Watching, **__: Any) -> Any:
    """A training of eight ranks of which the last takes 10 bytes a sample more than the others."""
    assert watching.emulated is not None
    rank = watching.emulated.rank
    started.append((size, rank))
    peak = (110 if rank == 7 else 100) * size
    facts = {"rank": rank, "world_size": 8, "emulated": True, "has_group": True, "python": "3.11.7"}
    return [reading(steps(size), peak=peak, **facts)], Ended()


def tuned(monkeypatch: pytest.MonkeyPatch, start: Any, **settings: Any) -> TuneResult:
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", start)
    return run.tune(TuneSpec(TORCHRUN, memory_limit_bytes=4_000, emulate_ranks=8, **settings))


def test_the_worst_of_the_ranks_decides_and_each_has_its_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[int, int]] = []
    found = tuned(monkeypatch, partial(as_rank, started))
    assert (found.largest_batch_size, found.is_certified) == (36, True)
    assert (found.training.ranks, found.training.rank_peaks_bytes) == (8, (3_600, 3_600, 3_960))
    assert started[:3] == [(16, 0), (16, 1), (16, 7)]


def test_a_size_that_one_rank_refuses_is_not_started_as_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[int, int]] = []

    def refuses(*arguments: Any, **named: Any) -> Any:
        readings, ended = as_rank(started, *arguments, **named)
        if started[-1][0] > 20:
            failed = {"ended": "error", "error_type": "OutOfMemoryError", "error_message": "CUDA out of memory"}
            return [Reading({**readings[0].data, **failed})], ended
        return readings, ended

    found = tuned(monkeypatch, refuses, rank=(1, 7))
    assert found.largest_batch_size == 20
    assert {rank for size, rank in started if size > 20} == {1}


def test_emulated_ranks_state_no_speed_and_their_figures_say_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    document = tuned(monkeypatch, partial(as_rank, [])).to_dict()
    kinds = document["kinds"]
    assert (kinds["boundary"], kinds["largest.memory_bytes"], kinds["savings.hours_per_run"]) == (
        EMULATED,
        EMULATED,
        ASSUMED,
    )
    assert document["speed"]["why"] == NotCompared.EMULATED
    assert (document["recommended"], document["largest_with_reserve"]["batch_size"]) == (None, 34)
    assert {probe["samples_per_second"] for probe in document["probes"]} == {None}
    assert differing(document) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("training", "rank_peaks_bytes"), [3_600, 3_960]),
        (("training", "rank_peaks_bytes"), [3_600, 3_600, 3_600]),
        (("training", "ranks"), 3),
        (("spec", "emulate_ranks"), None),
        (("spec", "rank"), [0, 7]),
        (("probes", 0, "samples_per_second"), 100.0),
    ],
)
def test_forged_rows_of_ranks_are_refused(path: Any, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    document: Any = tuned(monkeypatch, partial(as_rank, [])).to_dict()
    *parents, last = path
    part = document
    for name in parents:
        part = part[name]
    part[last] = value
    with pytest.raises(ImpossibleFiguresError):
        answered(document)


def why_not(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[str, str]:
    def start(*arguments: Any, **named: Any) -> Any:
        readings, ended = as_rank([], *arguments, **named)
        return [Reading({**readings[0].data, **changes})], ended

    with pytest.raises(CommandUntunable) as refused:
        tuned(monkeypatch, start)
    return refused.value.code, str(refused.value)


def test_a_script_that_joins_no_group_has_no_ranks_to_emulate(monkeypatch: pytest.MonkeyPatch) -> None:
    code, message = why_not(monkeypatch, has_group=False)
    assert code == "no_process_group"
    assert "never called torch.distributed.init_process_group" in message


def test_what_the_hook_refuses_ends_the_run_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"ended": "error", "error_type": "NotEmulated", "error_message": "pipelining cannot be emulated"}
    assert why_not(monkeypatch, **failed) == ("cannot_emulate", "pipelining cannot be emulated")


def test_a_script_that_takes_a_gpu_by_its_rank_is_told_what_to_take_it_by(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"ended": "error", "error_type": "RuntimeError", "error_message": "CUDA error: invalid device ordinal"}
    code, message = why_not(monkeypatch, **failed)
    assert (code, "by another number than LOCAL_RANK" in message) == ("cannot_emulate", True)


def test_a_script_that_starts_several_ranks_itself_is_no_single_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*arguments: Any, **named: Any) -> Any:
        readings, ended = as_rank([], *arguments, **named)
        return readings * 2, replace(ended, seen=LastSeen(2, has_torch=True, text="", training=2))

    with pytest.raises(CommandUntunable, match="starts its ranks itself"):
        tuned(monkeypatch, start)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"emulate_ranks": 1}, "emulate_ranks: must be a whole number from 2 to 65,536"),
        ({"emulate_ranks": 8, "rank": (9,)}, "rank: 9 is no rank of 8: they are 0 to 7"),
        ({"emulate_ranks": 8, "rank": (0, 0)}, "rank: must name 1 to 64 different ranks"),
        ({"rank": (0,)}, "rank: is for --emulate-ranks N"),
        ({"communication_bytes": 1}, "communication_bytes: is for --emulate-ranks N"),
        ({"emulate_ranks": 8, "communication_bytes": -1}, "communication_bytes: must be a whole number of bytes"),
    ],
)
def test_ranks_that_cannot_be_stood_in_for_are_refused(given: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("(", r"\(")):
        TuneSpec(**{"command": TORCHRUN, **given})


def test_the_peak_of_each_rank_stands_beside_its_number_in_whatever_order_they_are_named() -> None:
    spec = TuneSpec(TORCHRUN, emulate_ranks=8, rank=(7, 0))
    assert [each.rank for each in spec.emulated_ranks] == [0, 7]
    assert rank_rows(spec.to_dict(), (70, 77)) == [(0, 70), (7, 77)]


def test_on_a_gpu_the_memory_of_nccl_is_kept_free_and_named() -> None:
    spec = TuneSpec(TORCHRUN, emulate_ranks=8)
    assert spec.emulated_ranks[0].communication_bytes == 688 * MIB
    (said,) = describe_emulation(spec.to_dict(), "cuda")
    assert "ranks 0, 1 and 7 of 8, one after the other; 688.0 MiB are kept free for NCCL (NCCL issue 964, A100)" in said
    assert "NCCL" not in describe_emulation(spec.to_dict(), "cpu")[0]
    given = replace(spec, communication_bytes=0, rank=(3,))
    assert (
        "rank 3 of 8, one after the other; 0 B are kept free for NCCL (as given)"
        in describe_emulation(given.to_dict(), "cuda")[0]
    )


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(HOOK))
    import memorymark_ranks  # type: ignore[import-not-found]

    return memorymark_ranks


class Refused(Exception):
    """The process that would have ended."""


def watched(monkeypatch: pytest.MonkeyPatch, hook: Any) -> tuple[Any, list[Any]]:
    ended: list[Any] = []

    def end(_: int) -> None:
        raise Refused

    monkeypatch.setattr(hook.os, "_exit", end)
    for name, value in EmulatedRank(3, 8, 0).variables.items():
        monkeypatch.setenv(name, value)
    return SimpleNamespace(settings={"emulated": {"rank": 3, "size": 8}}, end=lambda *how: ended.append(how)), ended


def launcher(program: Any, **config: int) -> Any:
    class ElasticLaunch:
        """The launcher of torch."""

        _config = SimpleNamespace(**config)
        _entrypoint = program

    return SimpleNamespace(elastic_launch=ElasticLaunch)


def test_a_launcher_becomes_the_rank_itself(monkeypatch: pytest.MonkeyPatch, hook: Any) -> None:
    seen, ran = watched(monkeypatch, hook)[0], []
    monkeypatch.setattr(hook.os, "execvp", lambda *program: ran.append(program))
    module = launcher(sys.executable, min_nodes=2, max_nodes=2, nproc_per_node=2)
    hook.replace_launcher(seen, module)
    module.elastic_launch()("-u", "train.py", "--bs", "8")
    assert ran == [(sys.executable, [sys.executable, "-u", "train.py", "--bs", "8"])]
    place = ("RANK", "WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    assert [hook.os.environ[name] for name in place] == ["3", "8", "1", "4", "0", "2"]


def test_more_ranks_of_a_host_than_are_emulated_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, hook: Any) -> None:
    seen, ended = watched(monkeypatch, hook)
    module = launcher(sys.executable, nproc_per_node=16)
    hook.replace_launcher(seen, module)
    with pytest.raises(Refused):
        module.elastic_launch()("train.py")
    assert ended[0][:2] == ("error", "NotEmulated")
    assert "--nproc-per-node 16 of 8 ranks" in ended[0][2]


def test_a_script_counts_a_gpu_for_each_rank_of_its_host_and_finds_the_one_that_is_here(
    monkeypatch: pytest.MonkeyPatch, hook: Any
) -> None:
    watched(monkeypatch, hook)
    count = hook.counting_ranks(lambda: 1)()
    assert (count >= 8, len(range(count)), 3 % count) == (True, 8, 0)
    assert hook.counting_ranks(lambda: 0)() == 0
    assert eval("count()", {"__name__": "torch.random", "count": hook.counting_ranks(lambda: 1)}) == 1


def test_what_begins_another_parallelism_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch, hook: Any) -> None:
    seen, ended = watched(monkeypatch, hook)
    found = hook.actions(seen)
    for name, (attribute, said) in hook.REFUSED.items():
        module, (*owners, last) = ModuleType(name), attribute.split(".")
        owner: Any = type(owners[0], (), {}) if owners else module
        setattr(owner, last, lambda *_: None)
        if owners:
            setattr(module, owners[0], owner)
        found[name](module)
        with pytest.raises(Refused):
            getattr(owner, last)()
        assert said in ended[-1][2]
