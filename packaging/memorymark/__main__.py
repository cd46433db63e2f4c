"""Starts the command line: `python -m memorymark`."""

import sys

from .engine.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
