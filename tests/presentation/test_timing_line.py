"""The line of how the speeds of a result were compared, and what other programs did meanwhile."""

from dataclasses import replace

from analysis.presentation.result_summary import describe_timing
from engine.describe.speed import others_of
from engine.documents.measured import Measured
from engine.results.result import RunResult
from engine.results.speed_rounds import SpeedRound, Stage
from tests.factories.speeds import make_result_out_of_time, make_timed_result, make_unmeasurable_result


def stored(result: RunResult) -> Measured:
    return Measured.from_dict(result.to_dict())


def test_the_timing_says_what_else_the_machine_did() -> None:
    said = describe_timing(stored(make_timed_result()))
    assert said == "12 rounds in 24 s."
    disturbed = describe_timing(stored(make_unmeasurable_result()))
    assert disturbed == "12 rounds in 24 s, 3 of them quiet."


def test_rounds_that_do_not_count_are_no_reason_to_say_that_others_disturbed_it() -> None:
    """The mean over all rounds was 0.2 of 2 cores, and the page said "all without other programs" beside it."""
    result = make_timed_result()
    rounds = tuple(SpeedRound(Stage.EVALUATION, 1.0, ()) for _ in range(14))
    assert describe_timing(stored(replace(result, speed_rounds=rounds))) == (
        "12 of 14 rounds in 24 s count; other programs ran beside the rest."
    )
    assert others_of(result) == ""


def test_a_comparison_that_took_no_time_has_no_line() -> None:
    result = make_result_out_of_time()
    assert describe_timing(stored(result)) == ""
