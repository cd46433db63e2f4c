"""Where starts of one size are given other rows, and so take other memory, no limit is called exact."""

from itertools import count
from typing import Any

import pytest

from engine.kinds import find_contradictions
from engine.results.result import Outcome, Probe, Purpose, Reason
from engine.search.differing_starts import STARTS_WHERE_THEY_DIFFER, do_starts_differ, next_where_starts_differ
from engine.search.unguided import Found
from engine.tune import run
from engine.tune.evidence import Ended
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from tests.engine.tune.test_evidence import marks_of, reading, steps

LIMIT = 10_000


def tuned(monkeypatch: pytest.MonkeyPatch, *, percent: list[int], varied: bool = True) -> tuple[list[int], Any]:
    """Tune a training of about 100 bytes a sample; each of its starts takes the next share of that, in percent."""
    started: list[int] = []
    numbers = count()

    def start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        started.append(batch_size)
        marks = marks_of(steps(batch_size))
        for length, mark in enumerate(mark for mark in marks if mark[1] == "forward"):
            mark[3] = [batch_size, 20 + length if varied else 20]
        peak = batch_size * percent[next(numbers) % len(percent)]
        return [reading([], marks=marks, peak=peak, python="3.11.7")], Ended(wall_seconds=1.0)

    monkeypatch.setattr(run, "start", start)
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=LIMIT, compare_speed=False)
    return started, run.tune(spec)


def test_a_training_that_each_start_repeats_is_started_once_more_and_stays_certified(monkeypatch) -> None:
    started, found = tuned(monkeypatch, percent=[100])
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.certified, started.count(100)) == (100, True, 2)


def test_a_training_with_rows_of_one_size_is_not_started_again(monkeypatch) -> None:
    started, found = tuned(monkeypatch, percent=[100], varied=False)
    assert (found.is_certified, started.count(100)) == (True, 1)


@pytest.mark.parametrize("percent", [[97, 103, 100], [100, 99, 101, 98, 102], [101, 95, 98]])
def test_a_training_that_differs_from_start_to_start_gets_a_size_that_trained_in_all_of_four(
    monkeypatch, percent
) -> None:
    started, found = tuned(monkeypatch, percent=percent)
    boundary = found.result.boundary
    size = boundary.largest_batch_size
    made = [p for p in found.result.probes if p.batch_size == size and p.purpose is not Purpose.CURVE]
    assert [p.outcome for p in made] == [Outcome.FITS] * STARTS_WHERE_THEY_DIFFER
    assert (boundary.certified, boundary.reason) == (False, Reason.OUT_OF_MEMORY)
    least, most = (f(p.peak_allocated_bytes for p in made) for f in (min, max))
    assert f"4 starts of {size} took" in boundary.note
    assert least < most <= LIMIT
    assert len(started) < 20
    assert [each for each in find_contradictions(found.to_dict()) if "boundary" in each.field] == []


def probe(size: int, peak: int | None, *, fits: bool = True) -> Probe:
    outcome = Outcome.FITS if fits else Outcome.OUT_OF_MEMORY
    return Probe(size, outcome, fresh_process=True, peak_allocated_bytes=peak)


def test_a_refusal_whose_memory_is_not_known_lowers_the_size_by_one() -> None:
    probes = [probe(50, 900), probe(51, None, fits=False), probe(50, None, fits=False)]
    assert do_starts_differ(probes)
    assert next_where_starts_differ(Found(50, 51), probes, 1_000) == 49


def test_a_batch_of_one_that_ran_out_in_one_of_its_starts_ends_the_search() -> None:
    probes = [probe(1, 900), probe(2, 1_500, fits=False), probe(1, 1_100, fits=False)]
    assert next_where_starts_differ(Found(1, 2), probes, 1_000) == Found(0, 1)
