"""Starts the command line; `cli/main.py` lists its commands."""

import sys

from .cli.printing.living_line import first_line


def main() -> int:
    """Show on a terminal that the command has begun, then load what runs it: that takes up to half a second."""
    with first_line(sys.argv[1:]):
        from .cli.main import main as run

        return run()


if __name__ == "__main__":
    sys.exit(main())
