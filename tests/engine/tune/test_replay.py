"""From the allocator's events to what would live on a device: the peak, the rest, and the curve of a step."""

import pytest

from engine.tune import replay
from engine.tune.replay import cpu_memory


def test_what_is_loaded_counts_once_it_is_handed_over_and_what_the_loader_keeps_never_does() -> None:
    """Workers answer out of turn: the loader then holds a batch for later, which would be the host's."""
    marks = [[0, "loading"], [0, "loaded"], [0, "batch", True, [8], None, [[11, 40]]], [0, "phase", "forward", None]]
    marks += [[0, "forward", 9, [8], None, [[11, 40]]], [0, "step", 1]]
    events = [[1, 0], [2, 10, 500], [3, 11, 40], [4, 10, -500], [5, 13, 40], [6, 1], [7, 2], [8, 3], [9, 12, 60]]
    events += [[10, 4], [11, 12, -60], [12, 5], [13, 13, -40]]
    memory = cpu_memory([[1, 100]], events, marks)
    assert (memory.peak_bytes, memory.phase, memory.resting_bytes) == (200, "forward", 140)


def test_a_batch_whose_tensors_cannot_be_listed_counts_with_all_that_was_loaded() -> None:
    marks = [[0, "loading"], [0, "loaded"], [0, "batch", True, None, None, []]]
    assert cpu_memory([[1, 100]], [[1, 0], [2, 10, 50], [3, 1], [4, 2]], marks).peak_bytes == 150


def test_a_block_at_an_address_that_was_held_takes_its_place() -> None:
    """The profiler reports no deallocation of what was allocated before it began, as of the first gradients."""
    assert cpu_memory([[1, 100], [2, 40]], [[5, 2, 40], [6, 2, -40]], []).peak_bytes == 140


def test_inputs_that_no_allocation_was_seen_of_count_until_the_next_ones() -> None:
    """A batch of a worker process, a slice of the data set, or one made before the first step is still the batch."""
    phase, forward = [0, "phase", "forward", None], [0, "forward", 9, [8], None]
    marks = [phase, [*forward, [[20, 30]]], phase, [*forward, [[21, 40]]]]
    events = [[1, 0], [2, 10, 50], [3, 1], [4, 10, -50], [5, 2], [6, 10, 50], [7, 3], [8, 10, -50]]
    assert cpu_memory([[1, 100]], events, marks).peak_bytes == 190


def test_inputs_that_were_allocated_while_watched_or_belong_to_the_model_count_once() -> None:
    marks = [[0, "phase", "forward", None], [0, "forward", 9, [8], None, [[10, 50], [1, 100]]]]
    assert cpu_memory([[1, 100]], [[1, 10, 50], [2, 0], [3, 1], [4, 10, -50]], marks).peak_bytes == 150


def test_an_input_made_before_the_watch_ends_when_it_is_freed() -> None:
    marks = [[0, "phase", "forward", None], [0, "forward", 9, [8], None, [[20, 30]]], [0, "step", 1]]
    events = [[1, 0], [2, 1], [3, 20, -30], [4, 11, 10], [5, 2]]
    memory = cpu_memory([[1, 100]], events, marks)
    assert (memory.peak_bytes, memory.resting_bytes) == (130, 110)


def test_a_batch_of_a_loader_s_workers_counts_with_its_labels() -> None:
    marks = [[0, "batch", True, [8], None, [[20, 30], [21, 8]]], [0, "phase", "forward", None]]
    marks += [[0, "forward", 9, [8], None, [[20, 30]]]]
    assert cpu_memory([[1, 100]], [[1, 0], [2, 1], [3, 2]], marks).peak_bytes == 138


def test_the_curve_is_of_the_step_that_held_most_without_the_first_and_without_what_is_loaded() -> None:
    step, loading, loaded = [0, "step", 1], [0, "loading"], [0, "loaded"]
    marks = [step, loading, loaded]
    first = [[1, 10, 500], [2, 10, -500], [3, 0]]
    whole = [[4, 1], [5, 11, 70], [6, 11, -70], [7, 2], [8, 12, 60], [9, 13, 8], [10, 13, -8], [11, 12, -60], [12, 0]]
    short = [[13, 12, 20], [14, 12, -20], [15, 0]]
    assert cpu_memory([[1, 100]], [*first, *whole, *short], marks).curve == (160, 168, 160, 100)
    assert cpu_memory([[1, 100]], [*first], marks).curve == ()


def test_a_step_of_one_optimizer_s_curve_holds_those_of_the_others() -> None:
    marks = [[0, "step", 1], [0, "step", 2]]
    events = [[1, 0], [2, 1], [3, 10, 50], [4, 10, -50], [5, 0], [6, 11, 20], [7, 11, -20], [8, 1]]
    assert cpu_memory([[1, 100]], events, marks).curve == (150, 100, 120, 100)


def test_a_step_of_more_changes_than_are_compared_has_no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_MOVES", 1)
    events = [[1, 0], [2, 10, 50], [3, 10, -50], [4, 0]]
    assert cpu_memory([[1, 100]], events, [[0, "step", 1]]).curve == ()
