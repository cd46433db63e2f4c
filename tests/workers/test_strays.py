"""Orphans below a process come to it, and are ended; its own children are not."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux gives orphans to others")

LEAVES_A_DAEMON = "import os, time; os.fork() and os._exit(0); os.setsid(); os.closerange(0, 99); time.sleep(600)"
LOOKS = f"""
import subprocess, sys, time
from analysis.workers.strays import adopt_orphans, kill_strays, own_children
adopt_orphans()
own = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
subprocess.run([sys.executable, "-c", {LEAVES_A_DAEMON!r}], check=True)
(stray,) = own_children() - {{own.pid}}
counts = kill_strays(keep={{own.pid}}), kill_strays(keep={{own.pid}})
print(stray, *counts, own.poll())
own.kill()
"""


def test_an_orphan_is_ended_and_an_own_child_is_kept():
    """In a process of its own: this one must not take in what other tests leave."""
    done = subprocess.run([sys.executable, "-c", LOOKS], capture_output=True, text=True, check=True)
    stray, *told = done.stdout.split()
    assert told == ["1", "0", "None"]
    assert not os.path.exists(f"/proc/{stray}")


KEEPS = f"""
import django, subprocess, sys
django.setup()
from analysis.workers.process_manager import Child, ProcessManager
manager = ProcessManager(adopts_orphans=True)
manager.start([Child("sleeper", [sys.executable, "-c", "import time; time.sleep(600)"])])
subprocess.run([sys.executable, "-c", {LEAVES_A_DAEMON!r}], check=True)
from analysis.workers.strays import own_children
before = len(own_children())
manager.{{end}}
print(before, len(own_children()), manager.children[0].is_alive)
manager.kill()
"""


def end_by(end: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "memorymark_site.settings"}
    script = KEEPS.replace("{end}", end)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)


def test_up_ends_what_a_killed_worker_left_and_keeps_its_children():
    done = end_by("look()")
    assert done.stdout.split() == ["2", "1", "True"], done.stderr
    assert "ended stray processes that an engine had left" in done.stderr


def test_a_stop_that_was_asked_for_ends_them_without_a_warning():
    done = end_by("stop(seconds=5)")
    assert done.stdout.split() == ["2", "0", "False"], done.stderr
    assert "WARNING" not in done.stderr
