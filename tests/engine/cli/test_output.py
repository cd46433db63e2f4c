"""What the command line prints arrives whole, or the command ends quietly when nobody reads it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MEASURE = ("bert-tiny", "cpu", "--sequence-length", "8", "--memory-limit", "100MiB", "--no-estimate")


def start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """In a session of its own, so that its children can be counted by their group.

    With the signal of Ctrl-C as a terminal leaves it: a shell's background jobs, CI among them, ignore it.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **pipes,
    )


def has_ended(group: int) -> bool:
    """Whether no process of the group is left; one that was killed gets a moment to go."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def end_of_a_command_whose_reader_leaves(*arguments: str) -> tuple[int, bytes, int]:
    with start("-m", "engine", *arguments) as engine:
        assert engine.stdout.readline()
        engine.stdout.close()
        return engine.wait(), engine.stderr.read(), engine.pid


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_a_result_is_printed_whole_where_its_heading_cannot_be_encoded(encoding):
    code = (
        "from engine.cli.printing.output import run_command; from tests.engine.cli.test_cli import result; "
        "from engine.cli.printing.result_text import summary; run_command(lambda: print(summary(result())) or 0)"
    )
    done = start("-c", code, PYTHONIOENCODING=encoding)
    out, errors = done.communicate()
    assert (done.returncode, errors) == (0, b"")
    assert b"? MemoryMark Results - BERT on CUDA" in out
    assert b"Savings: $0.48/run" in out


@pytest.mark.parametrize("arguments", [("gpus",), ("models",), ("models", "--json")])
def test_a_reader_who_leaves_before_the_end_ends_a_listing_quietly(arguments):
    with start("-m", "engine", *arguments) as engine:
        engine.stdout.close()
        assert (engine.wait(), engine.stderr.read()) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--events",)])
def test_a_reader_who_leaves_ends_a_run_with_141_no_traceback_and_no_child(form):
    status, errors, group = end_of_a_command_whose_reader_leaves(*MEASURE, *form)
    assert (status, errors) == (141, b"")
    assert has_ended(group)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_what_is_known_in_a_line_and_leaves_no_child(number):
    engine = start("-m", "engine", *MEASURE)
    while b"batch 1 " not in engine.stdout.readline():
        assert engine.poll() is None
    os.killpg(engine.pid, number)
    _, errors = engine.communicate()
    assert engine.returncode == 128 + number
    assert errors.startswith(b"Stopped. 1 trained")
    assert errors.endswith(b" No result is stored.\n")
    assert errors.count(b"\n") == 1
    assert has_ended(engine.pid)
