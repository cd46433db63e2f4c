"""PURE: why a result says nothing of speeds, in every sentence that a run may give.

Where two sizes were compared, the result holds them: `describe.speed` writes what is said of these.
"""

from __future__ import annotations

from ..text.today import DEFAULT_BATCH_SIZE, name_today
from ..text.wording import Text, Wording

RUN_ENDED = "the run ended before the speeds were compared"
ONE_SIZE = "one batch size was checked, and no speeds compared"
TIME_ENDED = "the time budget ended before the speeds were compared"
STOPPED = "the run was stopped before the speeds were compared"
TIMING_FAILED = "the timing failed: the log says why"
LEFT_OUT = "the speeds were not compared, as requested"
NONE_TIMED = "no size could be timed: the log says why"

NOT_COMPARED = "each size was timed in a start of its own: speeds of separate starts are not compared"
"""The reason of a tuned training whose spec does not request a comparison."""
OF_EMULATED = "one device stands in for each rank alone: their exchange takes no time here, so no speed is stated"
"""The reason of a training whose ranks were emulated."""
_TODAY = {"today": (name_today(DEFAULT_BATCH_SIZE), Wording("your {size}"))}
TODAY_NOT_MEASURED = Wording("{today} was not measured here: no speed to compare with", _TODAY)
NONE_TO_COMPARE = Wording(
    "no larger size than {today} keeps the reserve, and no smaller one was clearly faster in its start", _TODAY
)
TOO_FEW = "too few sizes keep the reserve: nothing to compare"
TOO_LONG = Wording("{count} more starts, the fewest that tell, would take longer than a comparison may")

OF_MODELS: tuple[Text, ...] = (RUN_ENDED, ONE_SIZE, TIME_ENDED, STOPPED, TIMING_FAILED, LEFT_OUT, NONE_TIMED)
NOTHING_TO_COMPARE: tuple[Text, ...] = (TODAY_NOT_MEASURED, NONE_TO_COMPARE, TOO_FEW, TOO_LONG)
"""Why the starts of a training leave nothing to compare: they show it, so it is decided again."""
OF_STARTS: tuple[Text, ...] = (NOT_COMPARED, OF_EMULATED, *NOTHING_TO_COMPARE, STOPPED, TIME_ENDED, NONE_TIMED)
