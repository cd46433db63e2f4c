"""What a forked process is asked: its answer, its refusal, and every way in which it can end without one."""

import os
import signal
import sys
import time

import pytest

from engine.errors import DeviceUnavailable
from engine.machine.fork import ForkFailed, in_a_fork

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks only on Linux")


def refuse():
    raise DeviceUnavailable("cuda:9 is not here")


def test_the_answer_comes_from_another_process():
    assert in_a_fork(lambda: {"pid": os.getpid()}, 60)["pid"] != os.getpid()


def test_an_engine_error_is_raised_as_what_it_was():
    with pytest.raises(DeviceUnavailable, match="cuda:9 is not here"):
        in_a_fork(refuse, 60)


@pytest.mark.parametrize(
    ("work", "text"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "it was ended by SIGKILL"),
        (lambda: os._exit(3), "it ended with status 3"),
        (lambda: object(), "it ended with status 1"),  # nothing that can be told
    ],
    ids=["raises", "crashes", "exits", "cannot be told"],
)
def test_whatever_else_ends_it_is_told(work, text):
    with pytest.raises(ForkFailed, match=text):
        in_a_fork(work, 60)


def test_one_that_hangs_is_ended():
    with pytest.raises(ForkFailed, match="more than 1 s"):
        in_a_fork(lambda: time.sleep(600), 1)
