"""Every fork learns when the main process wants to stop, or is gone."""

import os
import subprocess
import sys

from django.conf import settings

from analysis.workers.fork_signs import StopPipe


def test_a_lifeline_is_cut_once_and_for_all():
    stop_pipe = StopPipe()
    assert not stop_pipe.is_stopping()
    stop_pipe.stop()
    stop_pipe.stop()
    assert stop_pipe.is_stopping()


def test_a_fork_learns_of_the_death_of_the_main_process():
    """In a process of its own: the fork outlives its parent, sees the end, and says so."""
    script = (
        "import os, sys\n"
        "from analysis.workers.fork_signs import StopPipe\n"
        "import select\n"
        "stop_pipe = StopPipe()\n"
        "if os.fork():\n"
        "    os._exit(0)\n"
        "select.select([stop_pipe._reading], [], [], 10)\n"
        "print(stop_pipe.is_stopping(), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=settings.BASE_DIR, env={**os.environ}, capture_output=True, text=True
    )
    assert done.stdout == "True\n", done.stderr
