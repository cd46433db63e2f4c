"""Waiting for what another process or thread does."""

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], *, seconds: float = 120.0) -> None:
    ends_at = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends_at, f"did not happen within {seconds} s"
        time.sleep(0.02)
