"""`python -m engine`, but it does not wait for a quiet machine: no speed means anything on made-up cards."""

import sys

from engine.cli.main import main
from engine.race.speed import comparison

if __name__ == "__main__":
    comparison.EXTRA_SECONDS = 0.5
    sys.exit(main())
