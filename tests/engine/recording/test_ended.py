"""Why a watched training ended: the steps before its death decide where the text of its error leaves it open."""

from dataclasses import replace
from typing import Any

import pytest

from engine.deaths.signs import Cause
from engine.recording.recording import Batches, PiledUp, Shares
from engine.recording.result import WatchResult
from engine.recording.words import lines
from engine.text.units import GIB, MIB
from tests.factories.watched import CPU, FULL, make_watched

NO_HOST_MEMORY = "RuntimeError: [enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"
IN_AN_EVALUATION = 'Traceback (most recent call last):\n  File "a.py", line 3, in evaluate\n'
LONG = Batches(latest=(64, 4_096), longest_before=(64, 1_024))
PILED_UP = PiledUp(shape=(64, 10), count=380, bytes=3 * GIB, graphs=380)


def cause_of(found: WatchResult) -> Cause:
    death = found.report.death
    assert death is not None
    return death.cause


def watched(error: str = FULL, *, grows_bytes: int = 0, on_cpu: bool = False, **process: Any) -> WatchResult:
    found = make_watched(error=error, grows_bytes=grows_bytes, **({"device": CPU} if on_cpu else {}))
    assert found.process is not None
    return replace(found, process=replace(found.process, **process))


@pytest.mark.parametrize("on_cpu", [False, True])
def test_growth_or_a_longer_batch_is_the_cause_of_a_late_death(on_cpu: bool) -> None:
    error = NO_HOST_MEMORY if on_cpu else FULL
    assert cause_of(watched(error, on_cpu=on_cpu)) is (Cause.HOST_MEMORY if on_cpu else Cause.LATE)
    assert cause_of(watched(error, on_cpu=on_cpu, grows_bytes=8 * MIB)) is Cause.GROWS
    assert cause_of(watched(error, on_cpu=on_cpu, piled_up=PILED_UP)) is Cause.GROWS
    assert cause_of(watched(error, on_cpu=on_cpu, batches=LONG)) is Cause.LONG_BATCH


def test_a_batch_like_the_others_or_a_growth_of_little_is_no_cause() -> None:
    alike = replace(LONG, latest=(64, 1_030))
    assert cause_of(watched(batches=alike)) is Cause.LATE
    assert cause_of(watched(piled_up=replace(PILED_UP, bytes=20 * MIB))) is Cause.LATE
    assert cause_of(watched(batches=replace(LONG, longest_before=()))) is Cause.LATE


def test_an_evaluation_is_the_cause_where_the_text_or_the_process_tells_it() -> None:
    assert cause_of(watched(f"{IN_AN_EVALUATION}{FULL}", batches=LONG)) is Cause.EVALUATION
    assert cause_of(watched(f"{IN_AN_EVALUATION}{NO_HOST_MEMORY}", on_cpu=True)) is Cause.EVALUATION


def test_the_hosts_memory_beside_a_card_ends_by_what_the_host_holds() -> None:
    found = watched(NO_HOST_MEMORY, batches=LONG)
    assert cause_of(found) is Cause.HOST_MEMORY
    assert cause_of(watched(NO_HOST_MEMORY, piled_up=PILED_UP)) is Cause.HOST_MEMORY
    of_host = tuple((step, at, GIB + step * MIB) for step, at, *_ in found.process.samples)
    assert cause_of(replace(found, process=replace(found.process, host_samples=of_host))) is Cause.GROWS


def test_the_report_says_what_grew_what_is_held_and_where_the_peak_came_from() -> None:
    shares = Shares(GIB, GIB, 2 * GIB)
    found = watched(grows_bytes=8 * MIB, piled_up=PILED_UP, shares=shares, training_peak_bytes=10 * GIB)
    said = lines(found.report, found.status)
    assert "The peak came in an evaluation; training steps had taken 10.0 GiB at most." in said
    assert "Weights 1.0 GiB, gradients 1.0 GiB, optimizer states 2.0 GiB; activations and the rest 6.0 GiB." in said
    assert "Memory grew: 8.0 MiB a step." in said
    left = "Steps left 380 tensors of 64 × 10 behind (3.0 GiB)"
    assert f"{left}, and 380 hold the graph of their step: call .item() or .detach()." in said


def test_the_batch_that_fits_is_estimated_from_what_training_steps_took() -> None:
    alone, with_evaluation = watched(""), watched("", training_peak_bytes=10 * GIB)
    assert (alone.report.fitting_batch_size or 0) < (with_evaluation.report.fitting_batch_size or 0)


def test_a_batch_that_was_longer_is_named_by_its_shape() -> None:
    found = watched(batches=LONG)
    assert "  It held a tensor of 64 × 4096; the largest before was 64 × 1024." in lines(found.report, found.status)
