"""What a sample of the batch size is for a training is told by two sizes, and each later start has to hold to it."""

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest

from engine.errors import CommandUntunable
from engine.facts.result import Outcome
from engine.trainings.script import run
from engine.trainings.script.judge.batch_size import NO_ROWS, Unit
from engine.trainings.script.notes.progress import Ended
from engine.trainings.script.notes.reading import BUDGET, TOTAL, Reading
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.launch import Watching
from tests.engine.questions.answers.answers import keeps_its_boundary
from tests.engine.trainings.script.starts import document_of
from tests.engine.trainings.script.test_evidence import CARD, MEMORY_STEPS, TIMED_STEPS, judged, reading

Calls = Callable[[int], list[int]]


def training(calls: Calls, bytes_of: Callable[[int], int] = lambda size: 10_000 * size) -> Any:
    """A training that calls its model in each step with these rows, and takes 10,000 bytes a sample."""

    def start(_: object, batch_size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        marks: list[list[Any]] = [[0.0, "armed", "2.13.0", ["train.py"]]]
        for number in range(MEMORY_STEPS + TIMED_STEPS):
            for rows in calls(batch_size):
                marks.append([number, "forward", 1_000, [rows, 64], None])
            marks += [[number, "phase", "optimizer_step", None], [number + 0.5, "step", 7]]
            if number + 1 == MEMORY_STEPS:
                marks.append([number + 0.5, "memory_read"])
        return [reading([], marks=marks, peak=bytes_of(batch_size), python="3.11.7")], Ended(wall_seconds=1.0)

    return start


def tuned(monkeypatch: pytest.MonkeyPatch, start: Any, **settings: Any) -> run.TuneResult:
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", start)
    spec = TuneSpec(("python", "t.py", "{batch_size}"), memory_limit_bytes=405_000, compare_speed=False, **settings)
    return run.tune(spec)


@pytest.mark.parametrize(
    ("calls", "note"),
    [
        (lambda size: [24 * size], "each sample of the batch size is 24 rows of the model"),
        (lambda size: [size + 64], "each sample of the batch size is 1 row of the model, with 64 more beside them"),
        (lambda size: [5, 15] * size, "each sample of the batch size is 20 rows of the model in several calls"),
        (
            lambda size: [min(8, size - at) for at in range(0, size, 8)],
            "each sample of the batch size is 1 row of the model in several calls",
        ),
        (
            lambda size: [4 * size, 2 * size, 2 * size],
            "each sample of the batch size is 8 rows of the model in several calls",
        ),
    ],
    ids=["rays", "unlabelled rows", "tasks", "chunks", "three calls"],
)
def test_what_grows_in_exact_proportion_to_the_size_is_certified_as_the_size(
    monkeypatch: pytest.MonkeyPatch, calls: Calls, note: str
) -> None:
    found = tuned(monkeypatch, training(calls))
    assert (found.largest_batch_size, found.is_certified, found.result.boundary.note) == (40, True, note)
    assert keeps_its_boundary(document_of(found))
    assert [size for size, _ in found.training.starts][:2] == [8, 16]
    assert found.training.micro_batches == 1


def test_a_training_without_a_module_is_measured_where_its_memory_rises_with_the_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = tuned(monkeypatch, training(lambda _: []))
    assert (found.largest_batch_size, found.is_certified, found.result.boundary.note) == (40, True, NO_ROWS)
    with pytest.raises(CommandUntunable, match="given nothing, and nothing with 8: .*functions alone"):
        tuned(monkeypatch, training(lambda _: [], lambda _: 10_000))


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        (
            lambda _: [32],
            "was given 32, and 32 with 8: its model's batches do not follow that size",
        ),
        (lambda _: [8], "was given 8, and 8 with 8: its model's batches do not follow that size"),
        (lambda _: [4] * 8, "was given 4, and 4 with 8: its model's batches do not follow that size"),
        (lambda size: [3 * size // 2 + 5], r"was given 29, and 17 with 8: that does not follow the size"),
        (lambda size: [size // 4] * 4, "was given 4, and 2 with 8: the script cuts its batches into 4 parts"),
        (lambda size: [size // 4], "was given 4, and 2 with 8: the steps were given a part of the size"),
    ],
    ids=["hard-coded", "the other size", "accumulated", "another slope", "parts", "a ramp"],
)
def test_what_does_not_grow_so_is_refused_with_what_both_sizes_were_given(
    monkeypatch: pytest.MonkeyPatch, calls: Calls, words: str
) -> None:
    with pytest.raises(CommandUntunable, match="started with batch size 16, the training ") as refused:
        tuned(monkeypatch, training(calls))
    assert words in str(refused.value)


def test_a_size_that_is_the_number_of_micro_batches_is_told_from_tasks_by_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CommandUntunable, match="take no more memory, so it accumulates that many"):
        tuned(monkeypatch, training(lambda size: [4] * size, bytes_of=lambda size: 500 + 4 * size))


def test_a_script_that_rounds_what_it_multiplies_is_not_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    boundary = tuned(monkeypatch, training(lambda size: [8 * (1 << (size.bit_length() - 1))])).result.boundary
    assert (boundary.largest_batch_size, boundary.certified) == (32, False)


def test_data_that_ends_before_the_memory_limits_a_size_of_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    boundary = tuned(monkeypatch, training(lambda size: [3 * min(size, 30)])).result.boundary
    assert (boundary.largest_batch_size, boundary.certified) == (30, False)


def test_data_that_has_fewer_rows_than_the_first_size_is_told_by_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    boundary = tuned(monkeypatch, training(lambda size: [min(size, 10)])).result.boundary
    assert (boundary.largest_batch_size, boundary.certified) == (10, False)


def test_a_second_size_that_does_not_train_tells_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    trains = training(lambda size: [8 * size])

    def start(_: object, size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        failed = {"ended": "error", "error_type": "ValueError", "error_message": "must be 16"}
        return trains(_, size) if size == 16 else ([reading([], **failed)], Ended(exit_status=1))

    with pytest.raises(CommandUntunable, match="was given 128; batch size 8, which .* ended with ValueError"):
        tuned(monkeypatch, start)


def varying(rows_of: Callable[[int, int], int], bytes_of: Callable[[int, int], int]) -> tuple[Any, list[Any]]:
    """A training whose rows have other lengths in each step, and the size, steps and seed of each of its starts."""
    lengths, starts = [11, 12, 14, 15, 16], []

    def start(_: object, size: int, watching: Watching, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        starts.append((size, watching.memory_steps, watching.again))
        marks: list[list[Any]] = [[0.0, "armed", "2.13.0", ["train.py"]]]
        for number in range(watching.memory_steps + TIMED_STEPS):
            length = lengths[number % 5]
            marks += [[number, "forward", 1_000, [rows_of(size, length), length], size], [number + 0.5, "step", 7]]
            if number + 1 == watching.memory_steps:
                marks.append([number + 0.5, "memory_read"])
        peak = bytes_of(size, watching.memory_steps)
        return [reading([], marks=marks, peak=peak, python="3.11.7")], Ended(wall_seconds=1.0)

    return start, starts


def test_batches_that_may_be_filled_up_to_a_number_of_tokens_are_told_what_to_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, _ = varying(lambda size, length: size // length, lambda size, _: 100 * size)
    with pytest.raises(CommandUntunable, match="add --sizes tokens"):
        tuned(monkeypatch, start, current_batch_size=512)


@pytest.mark.parametrize("first", [512, 8_192, 8], ids=["trains", "is refused", "below the longest sentence"])
def test_a_budget_of_tokens_is_certified_by_three_starts_of_many_steps(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    start, starts = varying(lambda size, length: max(size // length, 1), lambda size, _: 100 * size)
    found = tuned(monkeypatch, start, current_batch_size=first, sizes="tokens")
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.refused_batch_size, boundary.certified) == (4_050, 4_051, True)
    assert [each for each in starts if each[0] == 4_050] == [(4_050, 40, again) for again in range(3)]
    assert "the batch size is a budget of tokens" in (boundary.note or "")
    assert "4044 to 4050 items large" in (boundary.note or "")
    assert keeps_its_boundary(document_of(found))


def test_the_first_size_of_a_unit_is_started_again_where_its_steps_differed(monkeypatch: pytest.MonkeyPatch) -> None:
    start, starts = varying(lambda size, _: 24 * size, lambda size, steps: 10_000 * size * (2 if steps > 5 else 1))
    boundary = tuned(monkeypatch, start, current_batch_size=20).result.boundary
    assert (boundary.largest_batch_size, boundary.refused_batch_size, boundary.certified) == (20, 21, True)
    assert starts[:3] == [(20, 5, 0), (10, 5, 0), (20, 40, 0)]
    assert boundary.soak_steps == 40


def test_inputs_that_differ_from_start_to_start_mark_a_training_as_varied(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a script draws its image side once, when it begins."""
    sides = cycle([32, 48])

    def start(_: object, size: int, *__: object, **___: object) -> tuple[list[Reading], Ended]:
        side = next(sides)
        (found,), ended = training(lambda size: [size], lambda size: 300 * size * side)(None, size)
        for mark in found.data["marks"]:
            mark += [[], False, [[size, 3, side, side]]] if mark[1] == "forward" else []
        return [found], ended

    boundary = tuned(monkeypatch, start).result.boundary
    assert not boundary.certified
    assert "no exact limit is known" in (boundary.note or "")


def test_a_budget_that_the_script_does_not_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandUntunable, match="tokens: a budget is never exceeded, and filled by more than half"):
        tuned(monkeypatch, training(lambda _: [4]), sizes="tokens", current_batch_size=512)


def test_the_speed_is_told_in_samples_of_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tuned(monkeypatch, training(lambda size: [24 * size]))
    assert found.result.probes[1].samples_per_second == 16.0


@pytest.mark.parametrize(("axis", "rows"), [(TOTAL, 20), (BUDGET, 1)])
def test_what_a_card_refused_is_no_failure_where_all_steps_took_the_same(axis: int, rows: int) -> None:
    (found,), _ = training(lambda size: [5, 15] * size if rows > 1 else [size // 64])(None, 512)
    card = {"card": {**CARD, "refused_allocations": 2}, "device": "cuda:0", "raised_out_of_memory": 1}
    evidence = judged([Reading(found.data | card)], 512, unit=Unit(rows, 0, (axis,)))
    assert (evidence.probe.outcome, evidence.batch_axis) == (Outcome.FITS, 0)
