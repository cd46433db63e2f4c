"""From the allocator's events to what would live on a device: the peak, the rest, and the curve of a step."""

import pytest

from engine.trainings.script.notes import memory as replay
from engine.trainings.script.notes.memory import Memory, cpu_memory


def counted(events: list[list[int]], begun: int = 100) -> list[list[int]]:
    """Add to the blocks of one thread what the allocator has given out, of which `begun` bytes were there before."""
    whole, total = [], begun
    for event in events:
        total += event[2] if len(event) == 3 else 0
        whole.append([*event, total] if len(event) == 3 else event)
    return whole


def memory_of(events: list[list[int]], marks: list[list], begun: int = 100, data: tuple[list[int], ...] = ()) -> Memory:
    return cpu_memory(data, counted(events, begun), marks)


def test_what_is_loaded_counts_once_it_is_handed_over_and_what_the_loader_keeps_never_does() -> None:
    """Workers answer out of turn: the loader then holds a batch for later, which would be the host's."""
    marks = [
        [0, "loading"],
        [0, "loaded"],
        [0, "batch", True, [8], None, [[11, 40, True]]],
        [0, "phase", "forward", None],
    ]
    marks += [[0, "forward", 9, [8], None, [[11, 40, True]]], [0, "step", 1]]
    events = [[1, 0], [2, 10, 500], [3, 11, 40], [4, 10, -500], [5, 13, 40], [6, 1], [7, 2], [8, 3], [9, 12, 60]]
    events += [[10, 4], [11, 12, -60], [12, 5], [13, 13, -40]]
    memory = memory_of(events, marks)
    assert (memory.peak_bytes, memory.phase, memory.resting_bytes) == (200, "forward", 140)


def test_a_batch_whose_tensors_cannot_be_listed_counts_with_all_that_was_loaded() -> None:
    marks = [[0, "loading"], [0, "loaded"], [0, "batch", True, None, None, []]]
    assert memory_of([[1, 0], [2, 10, 50], [3, 1], [4, 2]], marks).peak_bytes == 150


def test_a_block_of_before_that_is_freed_counts_no_more_as_weights_that_are_replaced() -> None:
    memory = memory_of([[5, 2, 40], [6, 1, -100], [7, 3, 10], [8, 0]], [[0, "step", 1]])
    assert (memory.peak_bytes, memory.resting_bytes) == (140, 50)


def test_what_other_threads_hold_counts_where_this_one_allocates() -> None:
    memory = cpu_memory([], [[1, 2, 40, 140], [2, 3, 10, 450], [3, 3, -10, 140]], [])
    assert (memory.peak_bytes, memory.others_bytes) == (450, 300)


def test_a_data_set_that_was_there_before_counts_by_the_rows_that_were_given_alone() -> None:
    marks = [[0, "phase", "forward", None], [0, "forward", 9, [8], None, [[1, 30, True]]]]
    assert memory_of([[1, 0], [2, 1], [3, 10, 50]], marks, 1_100, ([1, 1_000],)).peak_bytes == 180


def test_memory_of_several_processes_is_not_among_what_the_allocator_counts() -> None:
    memory = cpu_memory([], [[1, 2, 40, 140], [2, 3, 70, 0], [3, 4, 10, 150], [4, 3, -70, 0], [5, 5, -20, 0]], [])
    assert (memory.peak_bytes, memory.others_bytes) == (220, 0)


def test_what_no_allocator_of_torch_made_counts_with_the_training() -> None:
    assert cpu_memory([], [[1, 2, 40, 140]], [], 60).peak_bytes == 200


def test_inputs_that_no_allocation_was_seen_of_count_until_the_next_ones() -> None:
    """A batch of a worker process, a slice of the data set, or one made before the first step is still the batch."""
    phase, forward = [0, "phase", "forward", None], [0, "forward", 9, [8], None]
    marks = [phase, [*forward, [[20, 30, False]]], phase, [*forward, [[21, 40, False]]]]
    events = [[1, 0], [2, 10, 50], [3, 1], [4, 10, -50], [5, 2], [6, 10, 50], [7, 3], [8, 10, -50]]
    assert memory_of(events, marks).peak_bytes == 190


def test_inputs_that_were_allocated_while_watched_or_belong_to_the_model_count_once() -> None:
    marks = [[0, "phase", "forward", None], [0, "forward", 9, [8], None, [[10, 50, True], [1, 100, True]]]]
    assert memory_of([[1, 10, 50], [2, 0], [3, 1], [4, 10, -50]], marks).peak_bytes == 150


def test_an_input_made_before_the_watch_ends_when_it_is_freed() -> None:
    marks = [[0, "phase", "forward", None], [0, "forward", 9, [8], None, [[20, 30, True]]], [0, "step", 1]]
    memory = memory_of([[1, 0], [2, 1], [3, 20, -30], [4, 11, 10], [5, 2]], marks, begun=130, data=([20, 30],))
    assert (memory.peak_bytes, memory.resting_bytes) == (130, 110)


def test_a_batch_of_a_loader_s_workers_counts_with_its_labels() -> None:
    marks = [[0, "batch", True, [8], None, [[20, 30, False], [21, 8, False]]], [0, "phase", "forward", None]]
    marks += [[0, "forward", 9, [8], None, [[20, 30, False]]]]
    assert memory_of([[1, 0], [2, 1], [3, 2], [4, 9, 50]], marks).peak_bytes == 188


def test_the_curve_is_of_the_step_that_held_most_without_the_first_and_without_what_is_loaded() -> None:
    step, loading, loaded = [0, "step", 1], [0, "loading"], [0, "loaded"]
    marks = [step, loading, loaded]
    first = [[1, 10, 500], [2, 10, -500], [3, 0]]
    whole = [[4, 1], [5, 11, 70], [6, 11, -70], [7, 2], [8, 12, 60], [9, 13, 8], [10, 13, -8], [11, 12, -60], [12, 0]]
    short = [[13, 12, 20], [14, 12, -20], [15, 0]]
    assert memory_of([*first, *whole, *short], marks).curve == (160, 168, 160, 100)
    assert memory_of([*first], marks).curve == ()


def test_a_step_of_one_optimizer_s_curve_holds_those_of_the_others() -> None:
    marks = [[0, "step", 1], [0, "step", 2]]
    events = [[1, 0], [2, 1], [3, 10, 50], [4, 10, -50], [5, 0], [6, 11, 20], [7, 11, -20], [8, 1]]
    assert memory_of(events, marks).curve == (150, 100, 120, 100)


def test_a_step_of_more_changes_than_are_compared_has_no_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_MOVES", 1)
    events = [[1, 0], [2, 10, 50], [3, 10, -50], [4, 0]]
    assert memory_of(events, [[0, "step", 1]]).curve == ()
