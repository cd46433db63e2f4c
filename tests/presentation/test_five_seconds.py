"""What is read in five seconds: a sentence of at most 17 words, then what is unused, what to use, what it saves."""

from dataclasses import replace
from itertools import product

import pytest

from analysis.presentation.kinds.validation import headline as headline_of_validation
from analysis.presentation.result_summary import headline, verdict
from engine.describe.key_figures import key_figures
from engine.describe.result import WORDS_MOST
from engine.facts.not_compared import NotCompared
from engine.facts.result import Boundary, Reason, RunResult, Savings
from engine.questions.documents.measured import Measured
from engine.questions.documents.stored import StoredSpec
from engine.questions.documents.validated import Validated
from engine.questions.validation.verdict import Check, Verdict
from engine.text.units import GIB
from tests.factories import make_result, make_result_that_does_not_fit, make_spec
from tests.factories.speeds import (
    make_bound_result,
    make_kept_result,
    make_result_out_of_time,
    make_timed_result,
    make_unmeasurable_result,
)
from tests.in_words.documents import documents, key_line

LONG = "my own training of a very long name, with more words than anybody reads"


def stored(result: RunResult) -> Measured:
    return Measured.from_dict(result.to_dict())


def by_hand() -> dict[str, RunResult]:
    """Results whose words are many: large sizes and intervals, long reasons and names."""
    wordy = make_unmeasurable_result()
    assert wordy.speed is not None
    nothing_fits, check = make_result_that_does_not_fit(), make_spec(check_batch_size=8)
    named = nothing_fits.to_dict() | {"spec": nothing_fits.spec.to_dict() | {"model": LONG}}
    assert len(headline(Measured.from_dict(named)).sentence.split()) <= WORDS_MOST
    return {
        "wide": make_bound_result(1.96, 1_234.5),
        "reason": replace(wordy, speed=replace(wordy.speed, why=NotCompared.NONE_TO_COMPARE, compared=None)),
        "refused": replace(wordy, spec=make_spec(current_batch_size=16), current=None),
        "time": make_result_out_of_time(),
        "kept": make_kept_result(),
        "check fits": replace(make_result(), spec=check),
        "check fails": replace(nothing_fits, spec=check, boundary=Boundary(None, False, 8, Reason.ONE_SIZE, LONG)),
        "check unknown": replace(
            nothing_fits, spec=check, boundary=Boundary(None, False, None, Reason.ERROR, note=LONG)
        ),
    }


@pytest.mark.parametrize("name", documents())
def test_the_sentence_of_every_recorded_result_is_short(name: str) -> None:
    said = headline(Measured.from_dict(documents()[name])).sentence
    assert len(said.split()) <= WORDS_MOST, said


@pytest.mark.parametrize("name", by_hand())
def test_the_sentence_of_a_result_with_many_words_is_short(name: str) -> None:
    said = headline(stored(by_hand()[name])).sentence
    assert len(said.split()) <= WORDS_MOST, said
    assert said.endswith(".")


@pytest.mark.parametrize("verdicts", [*product(Verdict, repeat=3)])
def test_the_headline_of_a_validation_counts_its_checks_and_is_short(verdicts: tuple[Verdict, ...]) -> None:
    checks = tuple(Check("", "", verdict, "") for verdict in verdicts)
    said = headline_of_validation(Validated(StoredSpec(check="backward"), make_result().device, checks, {}, {}))
    assert len(f"Vision Transformer B/16, {said}".split()) <= WORDS_MOST
    assert said.startswith(f"backward pass: {verdicts.count(Verdict.PASSED)} of 3 checks passed")
    assert ("failed" in said) == (Verdict.FAILED in verdicts)


def test_a_long_reason_follows_the_sentence() -> None:
    said = headline(stored(by_hand()["reason"]))
    assert said.sentence == "Up to 8 fit. None is recommended."
    assert said.notes[0].startswith("No larger size than your 4 keeps the reserve")


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (make_timed_result(), "Lost today: 28.1 % of the time · Use: 8 · Saves: $0.34 a run"),
        (make_bound_result(), "Lost today: at least 50.0 % of the time · Use: 8 · Saves: at least $0.60 a run"),
        (make_kept_result(), "Unused today: 60.9 % · Use: 4 · Saves: nothing"),
        (make_unmeasurable_result(), "Unused today: 60.9 % · Use: none recommended · Saves: not known"),
        (
            replace(make_unmeasurable_result(), spec=make_spec(current_batch_size=16), current=None),
            "Unused today: does not fit · Use: none recommended · Saves: not known",
        ),
        (make_result_that_does_not_fit(), ""),
    ],
)
def test_three_figures_say_what_is_unused_what_to_use_and_what_it_saves(result: RunResult, line: str) -> None:
    assert key_line(stored(result)) == line


def test_a_saving_of_money_says_what_is_assumed() -> None:
    notes = [key_figures(stored(result))[2].note for result in (make_timed_result(), make_bound_result())]
    assert notes == ["2 h at $0.60 an hour assumed"] * 2


def test_without_a_price_the_saving_is_time() -> None:
    free = Savings(0.0, 2.0, 100, 0.0, 0.0, 0.0)
    _, _, saves = key_figures(stored(make_timed_result()), free)
    assert (saves.value, saves.note) == ("time", "1.39x as fast as your 4 (1.36 to 1.42x)")
    _, _, least = key_figures(stored(make_bound_result()), free)
    assert (least.value, least.note) == ("time", "at least 2x as fast as your 4")


def test_the_figures_name_the_memory_and_the_size_that_they_refer_to() -> None:
    lost, use, _ = key_figures(stored(make_timed_result()))
    assert lost.note == "Your 4 trains an epoch in 1.39 times the time of 8. 60.9 % of 1 GiB is unused."
    assert use.note == "instead of your 4; 21.9 % unused"
    assert make_timed_result().waste.capacity_bytes == GIB


def test_a_message_has_the_answer_the_saving_and_how_far_it_trains() -> None:
    assert verdict(stored(make_bound_result())) == (
        "Use batch size 8: at least 2x as fast as your 4. Measured 2.0 to 3.8x as fast. "
        "Saves at least $0.60 a run. On this CPU, limited to 1 GiB, BERT tiny trains with up to 8 samples."
    )
