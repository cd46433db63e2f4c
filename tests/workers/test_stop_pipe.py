"""Every fork learns when the main process wants to stop, or is gone."""

from __future__ import annotations

import os
import subprocess
import sys

from django.conf import settings

from analysis.workers.stop_pipe import Lifeline


def test_a_lifeline_is_cut_once_and_for_all():
    lifeline = Lifeline()
    assert not lifeline.is_cut()
    lifeline.cut()
    lifeline.cut()
    assert lifeline.is_cut()


def test_a_fork_learns_of_the_death_of_the_main_process():
    """In a process of its own: the fork outlives its parent, sees the end, and says so."""
    script = (
        "import os, sys\n"
        "from analysis.workers.stop_pipe import Lifeline\n"
        "import select\n"
        "lifeline = Lifeline()\n"
        "if os.fork():\n"
        "    os._exit(0)\n"
        "select.select([lifeline._reading], [], [], 10)\n"
        "print(lifeline.is_cut(), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=settings.BASE_DIR, env={**os.environ}, capture_output=True, text=True
    )
    assert done.stdout == "True\n", done.stderr
