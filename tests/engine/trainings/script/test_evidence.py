"""What the hook noted becomes a probe only where it proves that the command trained with the wanted batch size."""

import pytest

from engine.errors import CommandUntunable
from engine.facts.result import Outcome
from engine.text.own_words import SAID
from engine.trainings.script.judge.evidence import Evidence, WatchedStart
from engine.trainings.script.notes.progress import KEPT_OUT, Ended, LastSeen
from engine.trainings.script.notes.reading import BY_LOADER, Reading
from engine.trainings.script.notes.whole_run import describe_peak
from tests.engine.trainings.script.test_replay import counted, memory_of

MEMORY_STEPS, TIMED_STEPS = 5, 4
RANK_OUT_OF_MEMORY = """

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/venv/torch/multiprocessing/spawn.py", line 95, in _wrap
    fn(i, *args)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


CARD = {
    **{"name": "A card", "uuid": None, "compute_capability": "9.0", "total_bytes": 100, "free_bytes": 50},
    **{"peak_allocated_bytes": 9, "peak_reserved_bytes": 9, "allocator_retries": 0},
}


def marks_of(sizes: list[list[int]], *, step_seconds: float = 1.0) -> list[list]:
    """One list of micro-batches a step; the loader waits for a quarter of each step."""
    marks: list[list] = [[0.0, "armed", "2.13.0", ["train.py"]]]
    now = 0.0
    for number, micro_batches in enumerate(sizes, 1):
        for size in micro_batches:
            marks += [[now, "loading"], [now + step_seconds / 4 / len(micro_batches), "loaded"]]
            marks += [[now, "batch", True, [size, 64], None], [now, "phase", "forward", None]]
            marks += [[now, "forward", 1_000, [size, 64], None], [now, "phase", "backward", None]]
        now += step_seconds
        marks += [[now, "phase", "optimizer_step", None], [now, "step", 7]]
        if number == MEMORY_STEPS:
            marks.append([now, "memory_read"])
    return marks


def reading(sizes: list[list[int]], *, peak: int = 900, **changes) -> Reading:
    events = [[5, 2, peak - 100, peak], [6, 2, 100 - peak, 100]]
    data = {"pid": 1, "rank": 0, "world_size": 1, "ended": "done", "error_type": None, "error_message": None}
    data |= {"marks": marks_of(sizes), "device": "cpu", "data": [], "uncounted_bytes": 0, "events": events, "card": {}}
    return Reading(data | changes)


def steps(size: int, micro_batches: int = 1) -> list[list[int]]:
    return [[size] * micro_batches] * (MEMORY_STEPS + TIMED_STEPS)


def said_of(evidence: Evidence) -> str:
    """What is noted of a start beside its figures."""
    return "; ".join(evidence.observed.describe(evidence.probe.batch_size, is_whole_run=evidence.whole_run is not None))


def judged(readings: list[Reading], batch_size: int = 40, *, ended: Ended | None = None, **changes) -> Evidence:
    settings = {"limit_bytes": 1_000, "batch": "template", "honoured": ()} | changes
    return WatchedStart(readings, ended or Ended(wall_seconds=2.0), batch_size, **settings).evidence()


def why_not(*arguments, **changes) -> str:
    with pytest.raises(CommandUntunable) as refused:
        judged(*arguments, **changes)
    assert refused.value.exit_status == 9
    return refused.value.code


def test_a_training_with_the_wanted_size_is_a_probe_with_its_peak_and_speed() -> None:
    evidence = judged([reading(steps(40))])
    probe = evidence.probe
    assert (probe.outcome, probe.peak_allocated_bytes, probe.fresh_process) == (Outcome.FITS, 900, True)
    assert (probe.steps, probe.samples_per_second, probe.step_seconds) == (MEMORY_STEPS, 40.0, 1.0)
    assert evidence.timing.waiting_fraction == pytest.approx(0.25)


def test_tokens_of_all_ranks_are_counted_by_the_second_and_the_slowest_fed_rank_waits() -> None:
    marks = [[at, name, *([d[0], d[1], 640] if name == "forward" else d)] for at, name, *d in marks_of(steps(10))]
    never_waits = [mark for mark in marks if mark[1] not in ("loading", "loaded")]
    two = {"world_size": 2}
    evidence = judged([reading([], marks=never_waits, **two), reading([], marks=marks, rank=1, **two)], 10)
    assert (evidence.timing.tokens_per_second, evidence.timing.waiting_fraction) == (1_280.0, pytest.approx(0.25))


def test_a_training_without_a_loader_has_no_share_of_waiting() -> None:
    marks = [mark for mark in marks_of(steps(40)) if mark[1] not in ("loading", "loaded", "batch")]
    assert judged([reading([], marks=marks)]).timing.waiting_fraction is None


def test_a_peak_above_the_budget_is_out_of_memory() -> None:
    probe = judged([reading(steps(40), peak=1_001)]).probe
    assert (probe.outcome, probe.error_type) == (Outcome.OUT_OF_MEMORY, "BudgetExceeded")
    assert "1001 B, 1 B over" in (probe.error_message or "")


def test_accumulated_micro_batches_count_into_the_samples_of_a_step() -> None:
    evidence = judged([reading(steps(40, 4))])
    assert (evidence.micro_batches, evidence.probe.samples_per_second) == (4, 160.0)


def test_short_batches_at_the_end_of_the_data_are_left_out() -> None:
    sizes = [[40], [40], [20]] * 3
    assert judged([reading(sizes)]).micro_batches == 1
    accumulated = [[40] * 4, [40, 40, 20], [40] * 4] * 3
    assert judged([reading(accumulated)]).micro_batches == 4


def test_a_gradient_scaler_that_skips_the_first_steps_leaves_a_longer_one_that_does_not_count() -> None:
    assert judged([reading([[40] * 3, *steps(40)])]).micro_batches == 1


def test_a_closure_that_is_called_differently_often_is_counted_by_its_fewest_calls() -> None:
    assert judged([reading([[40] * calls for calls in (25, 21, 20, 19, 18)])]).micro_batches == 18


def test_full_steps_that_came_after_the_memory_was_read_prove_nothing_of_it() -> None:
    warm_up = [[2]] * MEMORY_STEPS + [[40]] * TIMED_STEPS
    assert why_not([reading(warm_up)]) == "batch_size_ignored"


def test_a_batch_that_was_cut_into_smaller_ones_after_it_failed_was_not_trained() -> None:
    assert why_not([reading([[40, 20, 20]] * (MEMORY_STEPS + TIMED_STEPS))]) == "batch_size_ignored"


def test_a_second_dimension_that_equals_the_size_by_chance_is_told_from_the_batch() -> None:
    marks = [[at, name, *([d[0], [40, 16], None] if name == "forward" else d)] for at, name, *d in marks_of(steps(16))]
    evidence = judged([reading([], marks=[m for m in marks if m[1] != "batch"])], 16)
    assert (evidence.probe.outcome, evidence.batch_axis) == (Outcome.FITS, 1)


def test_a_peak_in_a_step_whose_phases_were_not_read_is_in_no_phase_of_another() -> None:
    card = {"peak_allocated_bytes": 900, "peak_reserved_bytes": 1_000, "total_bytes": 2_000, "free_bytes": 100}
    marks = [[*mark, 700] if mark[1] == "memory_read" else mark for mark in marks_of(steps(40))]
    marks = [[*mark, 600] if mark[1] == "phase" else mark for mark in marks]
    memory = reading([], marks=marks, card=card, device="cuda:0").memory()
    assert memory is not None
    assert memory.phase == "later_step"
    assert describe_peak(memory.phase, memory.shape, 2**20) == "the peak of 1.0 MiB is in a later step"


def test_a_command_whose_data_ended_first_is_measured_by_the_steps_it_had() -> None:
    probe = judged([reading([[40], [40], [40]], ended="exit")], ended=Ended(exit_status=0)).probe
    assert (probe.outcome, probe.steps) == (Outcome.FITS, 3)


def test_gpus_of_different_kinds_are_no_one_result() -> None:
    cards = [CARD | {"name": name} for name in ("A100", "A100", "H100")]
    ranks = [
        reading(steps(40), rank=rank, world_size=2, card=card) for rank, card in zip((0, 1, 1), cards, strict=True)
    ]
    assert judged(ranks[:2]).probe.fits
    with pytest.raises(CommandUntunable, match="A100 of rank 0, H100 of rank 1") as refused:
        judged([ranks[0], ranks[2]])
    assert refused.value.code == "gpus_differ"


def test_ranks_that_consume_differently_are_no_answer() -> None:
    two = {"world_size": 2}
    assert why_not([reading(steps(40), **two), reading(steps(40, 2), rank=1, **two)]) == "ranks_disagree"


def test_a_rank_that_ended_before_its_steps_is_no_answer_though_the_other_trained() -> None:
    first = reading(steps(40), world_size=2)
    ended_early = reading(steps(40)[:1], world_size=2, rank=1, ended="exit")
    assert why_not([first]) == "ranks_disagree"
    assert why_not([first, ended_early]) == "ranks_disagree"
    assert judged([first, reading(steps(40), world_size=2, rank=1)]).probe.fits


def test_processes_that_train_next_to_each_other_without_a_group_are_no_answer() -> None:
    assert why_not([reading(steps(40), pid=1), reading(steps(40), pid=2)]) == "several_trainings"
    one, trains_on = [reading(steps(40))], LastSeen(3, has_torch=True, text="", training=2)
    assert why_not(one, ended=Ended(seen=trains_on)) == "several_trainings"
    launcher = LastSeen(3, has_torch=True, text="", training=1)
    assert judged(one, ended=Ended(seen=launcher)).probe.fits


def test_the_worst_rank_decides_and_all_are_kept() -> None:
    two = {"world_size": 2}
    evidence = judged([reading(steps(40), rank=1, peak=950, **two), reading(steps(40), **two)])
    assert (evidence.probe.peak_allocated_bytes, evidence.ranks) == (950, (900, 950))
    assert evidence.probe.samples_per_second == 80.0


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"error_type": "OutOfMemoryError", "error_message": "CUDA out of memory"}, Outcome.OUT_OF_MEMORY),
        ({"error_type": "ProcessRaisedException", "error_message": RANK_OUT_OF_MEMORY}, Outcome.OUT_OF_MEMORY),
        ({"error_type": "RuntimeError", "error_message": "canUse32BitIndexMath"}, Outcome.SIZE_LIMIT),
        ({"error_type": "ValueError", "error_message": "no"}, Outcome.ERROR),
    ],
)
def test_a_rank_that_fails_decides_by_its_error(changes: dict, outcome: Outcome) -> None:
    other = reading([[40]], ended="error", rank=1, error_type="DistBackendError", error_message="reset by peer")
    assert judged([other, reading([[40]], ended="error", **changes)]).probe.outcome is outcome


def test_an_out_of_memory_that_the_script_caught_is_one_all_the_same() -> None:
    card = {"peak_allocated_bytes": 9, "peak_reserved_bytes": 9, "refused_allocations": 1, "allocator_retries": 0}
    card |= {"total_bytes": 100, "free_bytes": 50}
    skipped = [[40], [40, 40], *steps(40)]  # the first of two batches failed
    assert judged([reading(skipped, card=card)]).probe.outcome is Outcome.OUT_OF_MEMORY


def test_an_allocation_that_torch_did_without_is_noted_and_is_no_out_of_memory() -> None:
    evidence = judged([reading(steps(40), card={**CARD, "refused_allocations": 2}, device="cuda:0")])
    assert evidence.probe.fits
    assert said_of(evidence).startswith("the card refused 2 allocations, and torch went on with less")


def test_what_a_card_holds_beside_the_training_is_noted_of_one_process() -> None:
    card = {**CARD, "reserved_bytes": 9}
    failed = {"ended": "error", "error_type": "OutOfMemoryError", "error_message": "CUDA out of memory"}
    assert judged([reading(steps(40), card=card, device="cuda:0")]).probe.beside_bytes == 41
    assert judged([reading([[40]], card=card, **failed)]).probe.beside_bytes == 41
    assert reading(steps(40), card=card, world_size=2).beside_bytes is None


def test_a_loader_with_batches_of_its_own_is_told_why_no_size_can_be_set_in_it() -> None:
    marks = [*marks_of(steps(40)), [0.0, "own_batches"]]
    with pytest.raises(CommandUntunable, match="put together by a batch_sampler or by its data set"):
        judged([reading([], marks=marks)], batch="dataloader")


def test_a_start_without_any_python_that_has_torch_is_told_from_one_that_ended_early() -> None:
    assert why_not([]) == "hook_not_loaded"
    assert why_not([reading([[40]], ended="exit")], ended=Ended(exit_status=0)) == "ended_early"


@pytest.mark.parametrize(
    ("seen", "code", "words"),
    [
        (LastSeen(0, has_torch=False, text=""), "hook_not_loaded", KEPT_OUT),
        (LastSeen(2, has_torch=False, text=""), "hook_not_loaded", "Python ran with the hook and did not import it"),
        (
            LastSeen(2, has_torch=True, text="4 forward passes"),
            "ended_early",
            "0 optimizer steps.*seen last: 4 forward",
        ),
    ],
)
def test_what_was_seen_of_processes_that_noted_nothing_is_in_the_reason(seen: LastSeen, code: str, words: str) -> None:
    with pytest.raises(CommandUntunable, match=words) as refused:
        judged([], ended=Ended(exit_status=0, seen=seen))
    assert refused.value.code == code


def test_the_message_of_an_error_is_shown_without_secrets() -> None:
    message = "CUDA out of memory: postgres://u:hunter2@db/train"
    probe = judged([reading([[40]], ended="error", error_type="OutOfMemoryError", error_message=message)]).probe
    assert probe.error_message == "CUDA out of memory: postgres://u:***@db/train"


@pytest.mark.parametrize(
    ("error_type", "message", "outcome", "shown"),
    [
        ("ValueError", "patient alice has value 42", Outcome.ERROR, f"{SAID}patient alice has value 42"),
        ("ValueError", "", Outcome.ERROR, ""),
        ("OutOfMemoryError", "CUDA out of memory. 2 GiB", Outcome.OUT_OF_MEMORY, "CUDA out of memory. 2 GiB"),
        ("RuntimeError", "alice: CUDA out of memory", Outcome.OUT_OF_MEMORY, f"{SAID}alice: CUDA out of memory"),
        ("RuntimeError", "integer out of range", Outcome.SIZE_LIMIT, "integer out of range"),
        ("RuntimeError", "mat1 and mat2 of alice", Outcome.ERROR, f"{SAID}mat1 and mat2 of alice"),
    ],
)
def test_the_message_of_an_error_is_marked_as_the_scripts_own_words(
    error_type: str, message: str, outcome: Outcome, shown: str
) -> None:
    probe = judged([reading([[40]], ended="error", error_type=error_type, error_message=message)]).probe
    assert (probe.outcome, probe.error_type, probe.error_message) == (outcome, error_type, shown)


def test_a_command_that_ends_with_an_error_is_an_error_with_its_last_lines() -> None:
    ended = Ended(exit_status=2, last_lines="; its last lines: no such flag")
    probe = judged([], ended=ended).probe
    assert (probe.outcome, probe.error_message) == (
        Outcome.ERROR,
        "the command ended with status 2; its last lines: no such flag",
    )


def test_a_command_that_hangs_after_some_steps_is_an_error_that_says_after_what_time() -> None:
    seen = LastSeen(1, has_torch=True, text="2 optimizer steps, the last 110 s ago")
    ended = Ended(timed_out_after_seconds=120.0, last_lines="; its last lines: step 7", seen=seen)
    probe = judged([], ended=ended).probe
    assert (probe.outcome, probe.error_type) == (Outcome.ERROR, "Timeout")
    words = "seen last: 2 optimizer steps, the last 110 s ago; its last lines: step 7"
    assert probe.error_message == f"its steps were not done within 120 s; {words}"


def test_a_size_that_was_to_be_set_and_found_no_place_is_no_answer() -> None:
    assert why_not([reading(steps(40))], batch="dataloader") == "batch_size_not_set"


def test_memory_that_rises_with_every_step_is_told_from_memory_that_varies() -> None:
    marks = [[0, "step", 1]]
    rising = [event for at in range(5) for event in ([2 * at, 10 + at, 30], [2 * at + 1, 0])]
    varying = [event for at, n in enumerate((10, 90, 20, 80)) for event in ([2 * at, 10 + at, n], [2 * at + 1, 0])]
    assert memory_of(rising, marks).growth_bytes == 30
    assert memory_of(varying, marks).growth_bytes == 0
    grown = [event for at in range(5) for event in ([2 * at, 10 + at, 30], [2 * at + 1, 8])]
    assert marks_of(steps(40))[8][1] == "step"
    assert "30 B more behind" in said_of(judged([reading(steps(40), events=counted(grown))]))


def test_batches_of_different_lengths_are_said_to_be_so() -> None:
    marks = marks_of(steps(40))
    assert said_of(judged([reading([], marks=marks)])) == ""
    forwards = [mark for mark in marks if mark[1] == "forward"]
    for length, mark in enumerate(forwards, 90):
        mark[3] = [40, length]
    assert "90 to 94 long" in said_of(judged([reading([], marks=marks)]))


def test_a_whole_run_has_seen_the_longest_batch_unless_it_judged_length_by_characters() -> None:
    marks = marks_of(steps(40))
    for length, mark in enumerate((mark for mark in marks if mark[1] == "forward"), 90):
        mark[3] = [40, length]

    def caveat(*, is_text: bool) -> str:
        seen = {"data": [{"looked": 9, "is_trained": True, "is_text": is_text}], "is_evaluation_cut": False}
        return said_of(judged([reading([], marks=marks, whole_run=seen)]))

    assert caveat(is_text=False) == ""
    assert "90 to 94 long, and a longer one takes more memory" in caveat(is_text=True)


def test_the_steps_of_each_optimizer_are_counted_until_the_memory_was_read() -> None:
    marks = marks_of(steps(40))
    read = next(at for at, mark in enumerate(marks) if mark[1] == "memory_read")
    marks[read:read] = [[5.0, "step", 8]] * 2
    assert reading([], marks=marks).read_steps() == {7: MEMORY_STEPS, 8: 2}


def test_an_optimizer_that_has_made_no_step_yet_is_said_to_be_there() -> None:
    assert said_of(judged([reading(steps(40))])) == ""
    caveat = said_of(judged([reading(steps(40), idle_optimizers=1)]))
    assert caveat.startswith("1 of the optimizers had made no step yet")


def test_the_optimizer_s_own_peak_is_told_from_what_grows_with_the_batch() -> None:
    marks = [[0, "phase", "forward", None], [0, "phase", "optimizer_step", None], [0, "step", 1]]
    events = [[1, 0], [2, 10, 50], [3, 10, -50], [4, 1], [5, 11, 400], [6, 11, -400], [7, 2]]
    memory = memory_of(events, marks)
    assert (memory.peak_bytes, memory.phase, memory.batch_peak_bytes) == (500, "optimizer_step", 150)


def drawn(rows: list[int | None], given: int) -> Reading:
    """A training whose loader draws these rows for each step, and whose model is given another number of items."""
    marks = [
        [at, name, *([d[0], [given, 64], None] if name in ("batch", "forward") else d)]
        for at, name, *d in marks_of(steps(given))
    ]
    numbers = iter(rows * 100)
    return reading([], marks=[[*m, [], 1_000, next(numbers)] if m[1] == "batch" else m for m in marks])


def test_rows_are_counted_by_the_loader_where_no_dimension_is_the_batch_size() -> None:
    evidence = judged([drawn([8], 16)], 8)
    assert (evidence.probe.outcome, evidence.batch_axis, evidence.micro_batches) == (Outcome.FITS, BY_LOADER, 1)
    assert evidence.probe.samples_per_second == 8.0


def test_a_loader_that_draws_other_sizes_or_does_not_tell_proves_nothing() -> None:
    assert why_not([drawn([4], 16)], 8) == "batch_size_ignored"
    assert why_not([drawn([None], 16)], 8) == "batch_size_ignored"


def test_parts_of_a_batch_that_was_cut_are_not_counted_by_the_loader() -> None:
    """As where a script cuts a batch after it failed; whoever keeps the half holds no whole batch in later steps."""
    cut = [[*m, [], 1_000, 40] if m[1] == "batch" else m for m in marks_of([[40, 20, 20]] * 9)]
    assert why_not([reading([], marks=cut)]) == "batch_size_ignored"
    marks = marks_of([[20, 20]] * (MEMORY_STEPS + TIMED_STEPS))
    kept = [[*m[:3], [40, 64], None, [], 1_000, 40] if m[1] == "batch" else m for m in marks]
    assert why_not([reading([], marks=kept)]) == "batch_size_ignored"


def test_graphs_whose_edges_come_first_are_of_other_sizes_too() -> None:
    """A table of edges has two rows in each batch: by those alone, every batch of graphs was as large."""
    edges = iter(range(900, 10_000, 40))
    marks = [[*m[:3], [2, next(edges)], None] if m[1] == "forward" else m for m in marks_of(steps(16))]
    marks = [[*m[:3], [2, 900], None, [], 1_000, 8] if m[1] == "batch" else m for m in marks]
    assert "items large, and a larger one takes more memory" in said_of(judged([reading([], marks=marks)], 8))


def test_only_a_script_is_told_of_a_whole_run_that_sees_more() -> None:
    assert judged([reading(steps(40))]).unseen is not None
    assert judged([reading(steps(40))], batch="function").unseen is None
