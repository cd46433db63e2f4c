"""A script that does not take every size: the rule is given or learned, and the certificate is among its sizes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.describe.boundary import certificate
from engine.errors import SpecError
from engine.results.result import Reason
from engine.search.allowed_sizes import AllowedSizes, Rule
from engine.tune.evidence import Ended
from engine.tune.spec import TuneSpec
from engine.tune.training import TuneResult
from tests.engine.answers.answers import differing, keeps_its_boundary
from tests.engine.tune.starts import COMMAND, Noted, document_of, tuned
from tests.engine.tune.test_evidence import reading, steps

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
