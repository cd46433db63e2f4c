"""Sizes that drop out of the comparison of speeds: the document says when, so that every round can be checked."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from engine.errors import SpecError
from engine.kinds import find_contradictions
from engine.progress import Progress
from engine.recompute.document import MOST_BLOCKS, MOST_ROUNDS
from engine.results.result import Outcome
from engine.speed.comparison import TimedBlock
from tests.engine.honest_worker import HonestWorker, document_of


class DroppingWorker(HonestWorker):
    """A machine on which sizes can no longer be timed after some number of their blocks."""

    def __init__(self, boundary: int, blocks_until_it_fails: dict[int, int], **fields: Any) -> None:
        super().__init__(boundary, **fields)
        self.blocks_until_it_fails = blocks_until_it_fails

    def time(self, batch_size: int, *, block_seconds: float, seconds: float, progress: Progress) -> TimedBlock:
        if self.timed.count(batch_size) >= self.blocks_until_it_fails.get(batch_size, 10_000):
            self.timed.append(batch_size)
            return TimedBlock(batch_size, Outcome.OUT_OF_MEMORY, error_message="made up")
        return super().time(batch_size, block_seconds=block_seconds, seconds=seconds, progress=progress)


def dropped_out(**fields: Any) -> dict[str, Any]:
    """A document whose size 528 failed in its third block, and 256 in its first."""
    return document_of(DroppingWorker(528, {528: 2, 256: 0}, **fields))


def fields_of(document: dict[str, Any]) -> list[str]:
    return [each.field for each in find_contradictions(document)]


def is_verified(document: dict[str, Any]) -> bool:
    return bool(document["speed"]["is_measurable"]) and find_contradictions(document) == []


def test_the_rounds_of_a_document_name_the_sizes_that_dropped_out_in_them() -> None:
    document = dropped_out()
    left_out = [each["left_out"] for each in document["speed_rounds"] if each["left_out"] is not None]
    assert left_out == [256, 528]
    assert document["speed"]["left_out_batch_sizes"] == [256, 528]
    assert is_verified(document)


@pytest.mark.parametrize("blocks", range(14))
def test_a_size_that_drops_out_at_any_time_is_believed(blocks: int) -> None:
    for size in (4, 528):
        worker = DroppingWorker(528, {size: blocks}, seed=blocks, noise=0.1)
        assert find_contradictions(document_of(worker)) == []


def test_a_document_without_any_size_that_could_be_timed_is_believed() -> None:
    document = document_of(HonestWorker(40, not_together=frozenset(range(50))))
    assert (document["speed"]["is_measurable"], find_contradictions(document)) == (False, [])


@pytest.mark.parametrize("size", [1, 2, 527, 528, 4, 9_999])
def test_rounds_cannot_be_dropped_behind_a_size_that_is_said_to_have_dropped_out(size: int) -> None:
    """Six rounds of a real comparison are left out, and the check of their order with them: that was believed."""
    document = document_of(HonestWorker(528, noise=0.1))
    assert is_verified(document)
    for start in range(0, len(document["speed_rounds"]) - 6):
        forged = copy.deepcopy(document)
        forged["speed"]["left_out_batch_sizes"] = [size]
        del forged["speed_rounds"][start : start + 6]
        assert "speed.left_out_batch_sizes" in fields_of(forged)


def test_a_round_cannot_be_passed_off_as_one_that_a_size_ended() -> None:
    document = document_of(HonestWorker(528))
    for number, each in enumerate(document["speed_rounds"]):
        gone = each["blocks"][0]["batch_size"]
        forged = copy.deepcopy(document)
        forged["speed"]["left_out_batch_sizes"] = [gone]
        forged["speed_rounds"][number]["left_out"] = gone
        assert fields_of(forged)[0].startswith("speed_rounds[")


@pytest.mark.parametrize("number", range(3))
def test_the_rounds_after_a_size_dropped_out_are_those_that_were_called_for(number: int) -> None:
    document = dropped_out()
    ended = next(place for place, each in enumerate(document["speed_rounds"]) if each["left_out"] == 528)
    del document["speed_rounds"][ended + 1 + number]
    assert fields_of(document) != []


def test_rounds_that_do_not_say_when_a_size_dropped_out_show_no_speed() -> None:
    """Builds before 0.5 did not write it: a reason with figures cannot be checked either."""
    timed, busy = dropped_out(), dropped_out(noise=0.9, step_seconds=lambda size: 0.001 * size)
    assert (timed["speed"]["claim"], busy["speed"]["claim"]) == ("figure", "nothing")
    for document in (timed, busy):
        document["speed_rounds"] = [each for each in document["speed_rounds"] if each.pop("left_out") is None]
        for each in document["speed_rounds"]:
            each["blocks"] = [b for b in each["blocks"] if b["batch_size"] not in (256, 528)]
        assert "speed.left_out_batch_sizes" in fields_of(document)


def padded(rounds: int, sizes: int) -> dict[str, Any]:
    """A document of `rounds` rounds of several sizes. One was left out: then their order was not checked."""
    document = document_of(HonestWorker(528))
    first = document["speed_rounds"][0]
    blocks = [{**first["blocks"][0], "batch_size": size + 1} for size in range(sizes)]
    document["speed_rounds"] = [{**first, "seconds": 100.0, "blocks": blocks} for _ in range(rounds)]
    document["speed"]["left_out_batch_sizes"] = [1]
    return document


@pytest.mark.parametrize(("rounds", "sizes"), [(250, 25), (400, 2), (MOST_ROUNDS, 64), (MOST_BLOCKS // 40 + 1, 40)])
def test_more_rounds_than_a_comparison_can_have_are_refused_before_anything_is_decided(rounds: int, sizes: int) -> None:
    with pytest.raises(SpecError) as error:
        find_contradictions(padded(rounds, sizes))
    assert error.value.field == "speed_rounds"


def test_no_comparison_of_a_machine_that_stays_noisy_has_that_many_rounds() -> None:
    document = document_of(HonestWorker(20_000, noise=0.9, others_cores=3.0))
    assert len(document["speed_rounds"]) < MOST_ROUNDS / 2
    assert sum(len(each["blocks"]) for each in document["speed_rounds"]) < MOST_BLOCKS / 2
