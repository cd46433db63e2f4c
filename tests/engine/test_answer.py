"""A size is recommended only where today's is known: it trained, or it was refused."""

import pytest

from engine.build_result import answer
from engine.describe.result import answer_of
from engine.results.intervals import Interval
from engine.results.result import Boundary, DeviceFacts, Reason, RunResult, Timings
from engine.results.speed_rounds import SpeedClaim
from engine.speed.comparison import Comparison
from tests.factories import make_probe, make_refusal, make_spec

CARD = DeviceFacts("cuda:0", "cuda", "NVIDIA A10", 2**34, limit_bytes=2**34)
FASTEST_IS_4 = Comparison(
    claim=SpeedClaim.FIGURE, recommended=4, fastest=4, speeds={2: Interval(9, 10, 11), 4: Interval(19, 20, 21)}
)


def compared(today: int, *refused: int) -> RunResult:
    probes = [make_probe(1), make_probe(2), make_probe(4), *map(make_refusal, refused)]
    boundary = Boundary(4, certified=False, refused_batch_size=None, reason=Reason.MAX_BATCH_SIZE)
    spec = make_spec(current_batch_size=today, max_batch_size=4)
    return answer(spec, CARD, boundary, probes, FASTEST_IS_4, environment={}, timings=Timings())


def test_nothing_below_a_size_of_today_that_nobody_refused_is_recommended() -> None:
    result = compared(16)
    assert result.recommended is None
    assert result.speed is not None
    assert (result.fastest, result.speedup) == (None, None)
    assert result.speed.reason == "the default 16 was not measured here: no speed to compare with"
    assert answer_of(result).text.startswith(
        "At least 4 fit. None is recommended. The default 16 was not measured here"
    )


@pytest.mark.parametrize(("today", "refused"), [(16, (5,)), (4, ()), (16, (16,))])
def test_where_todays_size_trained_or_was_refused_the_fastest_is_recommended(today: int, refused: tuple) -> None:
    result = compared(today, *refused)
    assert result.recommended is not None
    assert result.recommended.batch_size == 4
