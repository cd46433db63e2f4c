"""What a training does in place of the size that it was started with is told; and a script that takes not every one."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.describe.boundary import certificate
from engine.errors import CommandUntunable, SpecError
from engine.facts.result import Outcome, Reason
from engine.search.allowed_sizes import AllowedSizes, Rule
from engine.trainings.script.notes.progress import Ended, LastSeen
from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.result import TuneResult
from engine.trainings.script.sizes.next_start import DataEnd
from engine.trainings.script.spec import TuneSpec
from tests.engine.questions.answers.answers import differing, keeps_its_boundary
from tests.engine.trainings.script.starts import COMMAND, Noted, document_of, tuned
from tests.engine.trainings.script.test_evidence import (
    CARD,
    MEMORY_STEPS,
    TIMED_STEPS,
    judged,
    marks_of,
    reading,
    steps,
    why_not,
)


def fed(size: int, rows: int, drawn: int | None = None, **changes: object) -> Reading:
    """A training that is given batches of this size out of so many rows."""
    marks = [[*mark, [], rows, drawn or size] if mark[1] == "batch" else mark for mark in marks_of(steps(size))]
    return reading([], marks=marks, **changes)


def test_a_training_that_ignores_the_size_is_no_answer() -> None:
    assert why_not([reading(steps(8))]) == "batch_size_ignored"
    assert why_not([reading(steps(8))], honoured={8}) == "batch_size_ignored"


def test_a_script_that_does_not_use_the_size_is_not_said_to_round_it() -> None:
    with pytest.raises(CommandUntunable, match=r"was given 640: it does not use that size; write \{batch_size\}"):
        judged([fed(640, 50_000)])


def test_batches_that_are_divided_among_cards_name_what_divides_them() -> None:
    with pytest.raises(CommandUntunable, match=re.escape("nn.DataParallel divides its batches among 4 GPUs")):
        judged([fed(160, 50_000, cards=4)])


def test_a_data_set_that_is_too_small_limits_the_size_and_is_no_refusal_of_memory() -> None:
    probe = judged([reading(steps(100))], 128, honoured={16, 64}).probe
    assert (probe.outcome, probe.error_type) == (Outcome.SIZE_LIMIT, "DataExhausted")
    assert "given 100" in (probe.error_message or "")


def test_a_script_that_rounds_its_batch_size_is_not_told_that_its_data_has_no_more() -> None:
    for honoured in ((), {16}):
        with pytest.raises(CommandUntunable, match=r"rounds or limits its size; --sizes"):
            judged([fed(520, 50_000)], 523, honoured=honoured)


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
    two = [fed(20, 20, world_size=2), fed(20, 20, rank=1, world_size=2)]
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
    later = judged([reading(alternating)], 32, takes_any_size=True, counts_all=not first.timing.counts_all)
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


MUTE = "the script's assertion has no text"


def searched(
    takes: Callable[[int], bool], most_for_memory: int, message: str = MUTE, **spec: Any
) -> tuple[list[int], TuneResult]:
    """Tune a made-up script of 100 bytes a sample, which fails with the sizes that it does not take."""

    def start(batch_size: int) -> Noted:
        if not takes(batch_size):
            failed = {"error_type": "AssertionError", "error_message": message.format(batch_size), "ended": "error"}
            return [reading([], **failed)], Ended(exit_status=1)
        return [reading(steps(batch_size), peak=100 * batch_size, python="3.11.7")], Ended(wall_seconds=10.0)

    return tuned(start, memory_limit_bytes=100 * most_for_memory + 50, **spec)


CASES = {
    "a divisor of a total": (lambda size: 512 % size == 0, 150, (128, 256), "powers of two"),
    "a divisor that a message names": (lambda size: 480 % size == 0, 150, (120, 160), "divisors of 480"),
    "a multiple of 8": (lambda size: size % 8 == 0, 1500, (1496, 1504), "multiples of 8"),
    "a power of two": (lambda size: size & (size - 1) == 0, 1500, (1024, 2048), "powers of two"),
}
NAMED = {"a divisor that a message names": "480 samples are not divisible by {}"}


@pytest.mark.parametrize("case", CASES)
def test_the_sizes_that_a_script_takes_are_learned_from_its_errors(case: str) -> None:
    takes, most, (largest, refused), rule = CASES[case]
    started, found = searched(takes, most, NAMED.get(case, MUTE))
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.refused_batch_size, boundary.certified) == (largest, refused, True)
    assert boundary.allowed_sizes == rule
    assert f"the script seems to take {rule} only" in (boundary.note or "")
    assert certificate(found.result).startswith(f"Certified among {rule}: {largest} trained")
    assert differing(document_of(found)) == []
    assert len(started) <= 9


LIST = (16, 24, 48, 96, 192, 384, 768)
CHOICES = "train.py: error: argument --bs: invalid choice: {} (choose from 16, 24, 48, 96, 192, 384, 768)"


@pytest.mark.parametrize("sizes", [None, "multiple of 8"])
def test_a_list_of_sizes_in_an_error_is_the_rule_beside_a_given_one_too(sizes: str | None) -> None:
    started, found = searched(lambda size: size in LIST, 200, CHOICES, sizes=sizes)
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.refused_batch_size, boundary.certified) == (192, 384, True)
    assert boundary.allowed_sizes == "the sizes 16, 24, 48, 96, 192, 384, 768"
    assert differing(document_of(found)) == []
    assert len(started) <= 6


def test_a_size_that_a_given_rule_allows_and_the_script_does_not_is_started_twice_at_most() -> None:
    started, found = searched(lambda size: size in LIST, 200, "no {}", sizes="multiple of 8")
    assert max(Counter(started).values()) <= 2
    assert len(started) <= 12
    assert (found.largest_batch_size, found.is_certified) == (24, False)
    assert keeps_its_boundary(found.to_dict())


def test_a_rule_that_two_errors_spell_out_is_not_searched_any_further() -> None:
    message = "total_batch_size (8192) must be a multiple of {}"
    started, found = searched(lambda size: 8192 % size == 0, 100, message)
    assert len([size for size in started if 8192 % size]) == 3  # one of them twice
    assert found.result.boundary.allowed_sizes == "divisors of 8,192"
    assert found.is_certified


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 64), st.integers(16, 5_000), st.integers(1, 40))
def test_no_certificate_leaves_out_a_size_that_a_given_rule_allows(number: int, most: int, today: int) -> None:
    started, found = searched(
        lambda size: size % number == 0, most, sizes=f"multiple of {number}", current_batch_size=today
    )
    assert all(size % number == 0 for size in started)
    boundary = found.result.boundary
    assert (boundary.largest_batch_size, boundary.refused_batch_size) == (
        most // number * number,
        (most // number + 1) * number,
    )
    assert boundary.certified
    assert keeps_its_boundary(found.to_dict())


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([2, 4, 8, 16]), st.integers(17, 3_000))
def test_a_learned_certificate_holds_for_the_true_rule(number: int, most: int) -> None:
    _, found = searched(lambda size: size % number == 0, most)
    boundary = found.result.boundary
    assert boundary.largest_batch_size == most // number * number
    assert boundary.certified


def test_the_largest_divisor_is_the_end_of_the_search() -> None:
    started, found = searched(lambda size: 48 % size == 0, 1000, sizes="divisor of 48")
    boundary = found.result.boundary
    assert (started, boundary.largest_batch_size, boundary.certified) == ([16, 48], 48, False)
    assert boundary.reason is Reason.SIZE_LIMIT
    assert "the script takes no larger size" in certificate(found.result)
    assert keeps_its_boundary(found.to_dict())


def test_where_not_even_the_smallest_allowed_size_fits_it_is_named() -> None:
    _, found = searched(lambda size: size % 8 == 0, 5, sizes="multiple of 8")
    assert found.largest_batch_size == 0
    assert certificate(found.result).startswith("Does not fit: batch 8 ran out of memory")


def test_a_wall_is_not_taken_for_a_rule() -> None:
    started, found = searched(lambda size: size <= 1000, 3000, "batch {} is too large for this script")
    boundary = found.result.boundary
    assert 900 <= boundary.largest_batch_size <= 1000
    assert (boundary.reason, boundary.certified, boundary.allowed_sizes) == (Reason.ERROR, False, None)
    assert f"{boundary.refused_batch_size:,} failed, and not for lack of memory" in certificate(found.result)
    assert keeps_its_boundary(found.to_dict())
    assert len(started) <= 11


def test_a_wall_whose_error_has_no_text_is_named_by_its_kind() -> None:
    _, found = searched(lambda size: size <= 1000, 3000, "")
    assert certificate(found.result).endswith("failed, and not for lack of memory (AssertionError).")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("multiple of 8", AllowedSizes(Rule.MULTIPLE, 8)),
        ("Multiples of 1,024", AllowedSizes(Rule.MULTIPLE, 1024)),
        ("divisor of 524288", AllowedSizes(Rule.DIVISOR, 524_288)),
        ("powers of 2", AllowedSizes(Rule.POWER_OF_TWO)),
        ("24, 16,48", AllowedSizes.of([16, 24, 48])),
        ("the sizes 16", AllowedSizes.of([16])),
    ],
)
def test_rules_are_read_as_people_write_them(text: str, rule: AllowedSizes) -> None:
    assert AllowedSizes.parse(text) == rule
    assert AllowedSizes.parse(rule.describe()) == rule


@pytest.mark.parametrize("text", ["", "8", "multiple of 0", "multiple of -8", "powers of three", "divisor of"])
def test_what_is_no_rule_is_refused_by_the_name_of_the_field(text: str) -> None:
    with pytest.raises(SpecError) as refused:
        TuneSpec(COMMAND, sizes=text)
    assert refused.value.field == "sizes"


def test_a_rule_without_a_size_in_range_is_refused() -> None:
    with pytest.raises(SpecError, match="allows no size up to the largest one, 50"):
        TuneSpec(COMMAND, sizes="multiple of 64", max_batch_size=50)
