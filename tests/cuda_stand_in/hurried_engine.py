"""`python -m engine`, but it does not wait for a quiet machine: no speed means anything on made-up cards."""

import sys

from engine.cli.main import main
from engine.speed import selection

if __name__ == "__main__":
    selection.SELECTION_EXTRA_SECONDS = selection.EXTRA_SECONDS = selection.QUIET_EXTRA_SECONDS = 0.5
    sys.exit(main())
