"""What an experiment on a card showed, and the verdict on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.card_experiments import expectations
from benchmarks.card_experiments.experiments import BY_NUMBER, EXPERIMENTS
from benchmarks.card_experiments.judging import judge
from benchmarks.card_experiments.setting import FULL, CannotRun, Verdict, Watch
from engine.text.units import GIB, MIB
from tests.benchmarks.synthetic_card import USED_BYTES, N, machine, prediction, result, run, seen, setting


@pytest.mark.parametrize("number", BY_NUMBER)
def test_each_experiment_is_as_expected_when_it_shows_what_is_expected(number: int) -> None:
    judgement = judge(BY_NUMBER[number], seen()[number], setting())
    assert judgement.verdict is Verdict.AS_EXPECTED, judgement
    assert judgement.seen
    assert not judgement.meaning
    assert BY_NUMBER[number].expected(setting())


def _change(number: int, part: str, **fields: Any) -> Callable[[dict], None]:
    return lambda all_seen: all_seen[number].update({part: {**all_seen[number].get(part, {}), **fields}})


DIFFERENCES = {
    "a poisoned fork": (1, _change(1, "run", error="RuntimeError: Cannot re-initialize CUDA"), "import poisons"),
    "a refusal of the whole card": (1, _change(1, "run", result=result(600, refusal=None)), "reserved, more than"),
    "another workspace": (2, _change(2, "run 2", autograd_workspace_bytes=8_519_680), "rule is wrong"),
    "cuBLASLt's own workspace": (2, _change(2, "run 1", cublaslt_workspace_bytes=MIB), "one workspace for both"),
    "contexts that wander": (2, _change(2, "run 3", context_bytes=604 * MIB), "lazy loading"),
    "memory that comes back late": (
        3,
        _change(3, "kills", kills=[{"held_after_bytes": GIB, "settled_seconds": 0.4}]),
        "settle",
    ),
    "another allocator": (4, _change(4, "plain", differences=[{"number": 7, "seed": 1}]), "granularity"),
    "the approximate method": (
        5,
        _change(5, "x", **prediction("vit-b16 b32 224", method="approximate")),
        "approximate",
    ),
    "a prediction out of bounds": (5, _change(5, "x", **prediction("bert-base b32 s128", 0.016)), "attention kernel"),
    "a boundary that moves": (6, _change(6, "run 2", **run(largest=N - 1)), "N moves"),
    "N that runs out of memory": (7, _change(7, "N", out_of_memory=True, steps=3), "what the loop holds"),
    "N+1 that trains": (7, _change(7, "N+1", out_of_memory=False, steps=200), "engine refuses more"),
    "a loop that crashes": (7, _change(7, "N", error="ended with status 1: KeyError"), "nothing is said of N"),
    "a slow N": (9, _change(9, "N", samples_per_second=900.0), "plan with less workspace"),
    "the driver's refusal": (
        10,
        _change(10, "run", error="CUDA driver error: out of memory"),
        "engine/measurement/oom.py",
    ),
    "less with expandable segments": (10, _change(10, "run", result=result(N - 1)), "less fits"),
    "a certificate beside a tenant": (11, _change(11, "run", result=result(800)), "other people's memory"),
    "a tenant that is not named": (11, _change(11, "run", result=result(800, False, "error")), "not named"),
    "a slow minute": (12, _change(12, "recommended", mean_step_seconds=0.22), "sustained timing"),
    "a classic run without a certificate": (
        13,
        _change(13, "x", result=result(8, False, "time_budget")),
        "not certified",
    ),
}


@pytest.mark.parametrize("what", DIFFERENCES)
def test_what_differs_is_told_with_what_it_means(what: str) -> None:
    number, change, meaning = DIFFERENCES[what]
    changed = seen()
    change(changed)
    judgement = judge(BY_NUMBER[number], changed[number], setting())
    assert judgement.verdict is Verdict.DIFFERS
    assert meaning in judgement.meaning


def test_the_drivers_count_differs_by_what_it_counts_for_the_process_of_six() -> None:
    six = {**seen()[6]["run 1"], "process_bytes_in_soak": 60 * GIB}
    assert judge(BY_NUMBER[8], {}, setting({6: {"run 1": six}})).verdict is Verdict.DIFFERS
    hidden = {**six, "process_bytes_in_soak": None}
    assert judge(BY_NUMBER[8], {}, setting({6: {"run 1": hidden}})).verdict is Verdict.NOT_RUN
    in_a_container = {**hidden, "card_bytes_in_soak": USED_BYTES}
    assert judge(BY_NUMBER[8], {}, setting({6: {"run 1": in_a_container}})).verdict is Verdict.AS_EXPECTED


def test_a_part_that_was_cut_short_is_no_verdict_on_the_card() -> None:
    cut = {"run": {"error": "had not ended after 500 s", "timed_out": True, "result": None}}
    judgement = judge(BY_NUMBER[10], cut, setting())
    assert (judgement.verdict, judgement.meaning) == (Verdict.NOT_RUN, "run: had not ended after 500 s")


def test_a_card_that_is_not_available_is_no_verdict_on_it() -> None:
    occupied = {"run": {"error": "cuda:0 has no room", "exit_status": 4, "result": None}}
    assert judge(BY_NUMBER[1], occupied, setting()).verdict is Verdict.NOT_RUN


def test_a_tenant_that_got_nothing_proves_nothing() -> None:
    alone = {"run": {**run(), "tenant": {}}}
    assert judge(BY_NUMBER[11], alone, setting()).verdict is Verdict.NOT_RUN


def test_times_and_the_drivers_ways_say_nothing_on_the_stand_in() -> None:
    silent = {
        e.number
        for e in EXPERIMENTS
        if judge(e, seen()[e.number], setting(is_stand_in=True)).verdict is Verdict.SAYS_NOTHING
    }
    assert silent == {2, 3, 8, 9, 12}


def test_what_builds_on_experiment_six_waits_for_its_boundary() -> None:
    without = setting({6: {"run 1": {"result": None, "error": "x"}}})
    for number in (7, 8, 12):
        with pytest.raises(CannotRun, match="experiment 6"):
            BY_NUMBER[number].parts(without)


def test_sizes_of_later_parts_are_those_that_earlier_ones_found() -> None:
    assert [part.command[-2] for part in BY_NUMBER[7].parts(setting())] == [str(N), str(N + 1)]
    assert [part.name for part in BY_NUMBER[9].parts(setting())] == ["run"]
    after_run = BY_NUMBER[9].parts(setting({9: {"run": run(largest=900)}}))
    assert [part.command[-2] for part in after_run[1:]] == ["900", "892"]
    assert [part.command[-2] for part in BY_NUMBER[12].parts(setting())] == ["16", "256"]
    assert {part.watch for part in BY_NUMBER[12].parts(setting())} == {Watch.CLOCKS}


def test_what_is_expected_depends_on_the_card() -> None:
    h100, a100 = machine(), machine(gpu="NVIDIA A100-SXM4-80GB", compute_capability="8.0")
    t4 = machine(gpu="Tesla T4", compute_capability="7.5", total_bytes=15 * GIB)
    assert [expectations.workspace_bytes(card) for card in (h100, a100, t4)] == [33_554_432, 8_519_680, 8_519_680]
    assert expectations.context_bytes(t4)[1] < expectations.context_bytes(a100)[0]
    assert expectations.sustained_fraction(t4) > expectations.sustained_fraction(a100)
    assert setting().tenant_bytes == 20 * GIB
    assert setting(total_bytes=24 * GIB).tenant_bytes == 6 * GIB


def test_every_predicted_workload_is_one_of_the_benchmark() -> None:
    source = (Path(__file__).parents[2] / "benchmarks" / "predicted_workloads.py").read_text()
    assert all(f'"{name}": PredictedWorkload(' in source for name, _ in FULL.predictions)
