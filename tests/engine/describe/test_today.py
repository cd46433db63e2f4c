"""Today's size by its name: nobody is told "your 16", which is assumed where no size is named."""

from dataclasses import replace

import pytest

from engine.describe.result import answer_of
from engine.public import DEFAULTS
from engine.text.today import DEFAULT_BATCH_SIZE, name_today
from tests.factories import make_spec
from tests.factories.speeds import make_kept_result, make_timed_result


def test_the_size_that_is_assumed_is_nobodys_and_another_is_yours():
    assert DEFAULTS["current_batch_size"] == DEFAULT_BATCH_SIZE
    assert (name_today(DEFAULT_BATCH_SIZE), name_today(1_024)) == ("the default 16", "your 1,024")


@pytest.mark.parametrize("made", [make_timed_result, make_kept_result])
def test_an_answer_never_calls_the_assumed_size_yours(made):
    usual, own = (answer_of(replace(made(), spec=make_spec(current_batch_size=size))).text for size in (16, 32))
    assert ("your" in usual.lower(), "the default 16" in usual) == (False, True)
    assert "your 32" in own
