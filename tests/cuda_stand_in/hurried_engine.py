"""`python -m engine`, but it does not wait for a quiet machine: no speed means anything on made-up cards."""

from __future__ import annotations

import sys

from engine import speed
from engine.__main__ import main

if __name__ == "__main__":
    speed.SELECTION_EXTRA_SECONDS = speed.EXTRA_SECONDS = speed.QUIET_EXTRA_SECONDS = 0.5
    sys.exit(main())
