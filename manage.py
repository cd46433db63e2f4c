#!/usr/bin/env python
"""Command line of the portal: `python manage.py up` starts everything."""

import os
import sys


def main() -> None:
    os.umask(0o077)  # what it makes, and what its children make, is for its own user: database, results, logs
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memorymark_site.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
