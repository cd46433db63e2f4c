"""What a training does in place of the size that it was started with is told, and the end of its data from all else."""

import re

import pytest

from engine.errors import CommandUntunable
from engine.results.result import Outcome
from engine.tune.data_end import DataEnd
from engine.tune.evidence import Ended
from engine.tune.reading import Reading
from engine.tune.seen import LastSeen
from tests.engine.tune.test_evidence import CARD, MEMORY_STEPS, TIMED_STEPS, judged, marks_of, reading, steps, why_not


def given(size: int, rows: int, drawn: int | None = None, **changes: object) -> Reading:
    """A training that is given batches of this size out of so many rows."""
    marks = [[*mark, [], rows, drawn or size] if mark[1] == "batch" else mark for mark in marks_of(steps(size))]
    return reading([], marks=marks, **changes)


def test_a_training_that_ignores_the_size_is_no_answer() -> None:
    assert why_not([reading(steps(8))]) == "batch_size_ignored"
    assert why_not([reading(steps(8))], honoured={8}) == "batch_size_ignored"


def test_a_script_that_does_not_use_the_size_is_not_said_to_round_it() -> None:
    with pytest.raises(CommandUntunable, match=r"was given 640: it does not use that size; write \{batch_size\}"):
        judged([given(640, 50_000)])


def test_batches_that_are_divided_among_cards_name_what_divides_them() -> None:
    with pytest.raises(CommandUntunable, match=re.escape("nn.DataParallel divides its batches among 4 GPUs")):
        judged([given(160, 50_000, cards=4)])


def test_a_data_set_that_is_too_small_limits_the_size_and_is_no_refusal_of_memory() -> None:
    probe = judged([reading(steps(100))], 128, honoured={16, 64}).probe
    assert (probe.outcome, probe.error_type) == (Outcome.SIZE_LIMIT, "DataExhausted")
    assert "given 100" in (probe.error_message or "")


def test_a_script_that_rounds_its_batch_size_is_not_told_that_its_data_has_no_more() -> None:
    for honoured in ((), {16}):
        with pytest.raises(CommandUntunable, match=r"rounds or limits its size; --sizes"):
            judged([given(520, 50_000)], 523, honoured=honoured)


def test_a_size_at_which_the_data_has_too_few_steps_is_no_refusal_of_memory() -> None:
    probe = judged([reading([[40]], ended="exit")], ended=Ended(exit_status=0), honoured={16}).probe
    assert (probe.outcome, probe.error_type) == (Outcome.SIZE_LIMIT, "DataExhausted")


def test_a_script_that_ends_in_order_after_an_error_is_not_said_to_have_no_more_data() -> None:
    """As below `@logger.catch`: a forward pass, and no step."""
    begun = [mark for mark in marks_of([[40]]) if mark[1] != "step"]
    hides = reading([], marks=begun, ended="exit")
    probe = judged([hides], ended=Ended(exit_status=0), honoured={16}).probe
    assert (probe.outcome, probe.error_type) == (Outcome.ERROR, "Exit")
    silent = reading([], marks=begun[:1], ended="exit")
    has_rows = judged([silent], ended=Ended(exit_status=0), honoured={16}, data_end=DataEnd(50_000, 1)).probe
    assert has_rows.outcome is Outcome.ERROR
    too_few = judged([silent], 40, ended=Ended(exit_status=0), honoured={16}, data_end=DataEnd(100, 1)).probe
    assert (too_few.outcome, too_few.error_message) == (
        Outcome.SIZE_LIMIT,
        "the data's 100 rows allow batches of up to 33",
    )


def test_ranks_among_which_a_script_divides_its_batch_are_told_what_to_write() -> None:
    two = [reading(steps(20), world_size=2), reading(steps(20), rank=1, world_size=2)]
    with pytest.raises(CommandUntunable, match=r"each of the 2 ranks was given 20: .*'\{batch_size\*2\}'") as refused:
        judged(two)
    assert refused.value.code == "batch_size_ignored"


def test_ranks_whose_data_ends_at_their_part_of_the_size_are_no_script_that_divides() -> None:
    two = [given(20, 20, world_size=2), given(20, 20, rank=1, world_size=2)]
    with pytest.raises(CommandUntunable, match="was given 20$"):
        judged(two)
    assert judged(two, honoured={16}).probe.outcome is Outcome.SIZE_LIMIT


@pytest.mark.parametrize("sizes", [[64, 448], [11, 12, 14, 15], [15, 15, 15, 9, 8, 7]])
def test_where_any_size_is_taken_every_step_counts_whatever_it_consumed(sizes: list[int]) -> None:
    varied = [[sizes[number % len(sizes)]] for number in range(MEMORY_STEPS + TIMED_STEPS)]
    probe = judged([reading(varied)], sizes[0], takes_any_size=True).probe
    assert (probe.outcome, len(probe.timed_step_seconds)) == (Outcome.FITS, TIMED_STEPS - 1)


def test_whether_steps_of_each_size_are_timed_is_decided_by_the_first_start_alone() -> None:
    alternating = [[32], [8]] * ((MEMORY_STEPS + TIMED_STEPS) // 2)
    first = judged([reading(alternating)], 32, takes_any_size=True)
    later = judged([reading(alternating)], 32, takes_any_size=True, counts_all=not first.counts_all)
    assert len(later.probe.timed_step_seconds) != len(first.probe.timed_step_seconds)


def test_ranks_whose_batches_vary_are_counted_alike_where_any_size_is_taken() -> None:
    two = {"world_size": 2}
    varied = [[11 + number] for number in range(MEMORY_STEPS + TIMED_STEPS)]
    ranks = [reading(steps(40, 2), **two), reading(varied, rank=1, **two)]
    assert judged(ranks, takes_any_size=True).probe.fits


def test_a_training_within_a_compiled_function_is_told_why_nothing_of_it_is_seen() -> None:
    marks = [mark for mark in marks_of(steps(40)) if mark[1] not in ("batch", "forward", "loading", "loaded")]
    with pytest.raises(CommandUntunable, match="no module ran in training mode.*a compiled function hides the modules"):
        judged([reading([], marks=marks)])
    seen = LastSeen(1, has_torch=True, text="", has_evaluated=True)
    with pytest.raises(CommandUntunable, match="no module ran in training mode; call model.train"):
        judged([reading([], marks=marks)], ended=Ended(seen=seen))


def test_rows_by_which_an_agent_acts_between_its_updates_are_no_smaller_batch() -> None:
    acts = [[at, "forward", 1_000, [1, 64], None] for at, name, *_ in marks_of(steps(40)) if name == "step"]
    marks = sorted([*marks_of(steps(40)), *acts], key=lambda mark: mark[0])
    evidence = judged([reading([], marks=[mark for mark in marks if mark[1] != "batch"])])
    assert (evidence.probe.outcome, evidence.micro_batches) == (Outcome.FITS, 1)


def test_a_training_that_goes_on_with_one_row_after_its_card_refused_the_batch_did_not_train_it() -> None:
    card = {**CARD, "refused_allocations": 9}
    rows = [[at, "forward", 1_000, [1, 64], None] for at, name, *_ in marks_of(steps(40)) if name == "step"]
    marks = sorted([*marks_of(steps(40)), *rows], key=lambda mark: mark[0])
    caught = reading([], marks=[mark for mark in marks if mark[1] != "batch"], card=card, device="cuda:0")
    assert judged([caught]).probe.outcome is Outcome.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("drawn", "given", "words"),
    [
        ([40] * 9, [10] * 9, "cuts its batches into 4 parts: write '{batch_size*4}'"),
        (
            [None] * 9,
            list(range(10, 19)),
            "grow from step to step; --soak-steps reads the steps",
        ),
    ],
)
def test_what_a_script_does_with_its_batches_is_told(drawn: list[int | None], given: list[int], words: str) -> None:
    marks = []
    for number, (size, part) in enumerate(zip(drawn, given, strict=True)):
        whole = [[number, "batch", True, [size, 64], None, [], 1_000, size]] if size else []
        parts = [[number, "forward", 1_000, [part, 64], None]] * ((size or part) // part)
        marks += [*whole, *parts, [number + 0.5, "step", 7]]
    with pytest.raises(CommandUntunable, match=re.escape(words)):
        judged([reading([], marks=marks)])


def test_what_the_card_refused_and_no_python_code_learnt_of_is_no_failure_that_a_training_caught() -> None:
    """As cuDNN's, in a script whose first step draws a batch ahead."""
    card, ahead = {**CARD, "refused_allocations": 2}, [[40, 40], *steps(40)]
    told, not_told = (reading(ahead, card=card, device="cuda:0", raised_out_of_memory=count) for count in (1, 0))
    assert judged([told]).probe.outcome is Outcome.OUT_OF_MEMORY
    assert judged([not_told]).probe.outcome is Outcome.FITS


@pytest.mark.parametrize(("drawn", "shape"), [(1, 50), (50, 50)])
def test_where_the_model_is_given_what_was_drawn_or_made_before_its_inputs_tell_the_end_of_the_data(
    drawn: int, shape: int
) -> None:
    marks = [[*mark, [], None, drawn] if mark[1] == "batch" else mark for mark in marks_of(steps(shape))]
    evaluation = [[0.5, "batch", True, [100, 64], None, [], None, 100]] if drawn > 1 else []
    found = judged([reading([], marks=[marks[0], *evaluation, *marks[1:]])], 72, honoured={20})
    assert (found.probe.outcome, found.most_samples) == (Outcome.SIZE_LIMIT, 50)
