"""Who holds a device is read from its lock, while somebody holds it, and is text that anybody could have written."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.machine.device_holder import HOST_LENGTH, WORK_LENGTH, Holder, described, holder_of
from engine.machine.device_lock import held

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import sys
from pathlib import Path
from engine.machine.device_lock import held
with held(Path(sys.argv[1]), "cpu", work="python -m engine bert-tiny cpu"):
    print("held", flush=True)
    input()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cpu.lock"


def written(**fields: object) -> Holder:
    return described(json.dumps({"pid": 546, "host": "vm", **fields}).encode())


def test_a_process_that_holds_the_device_is_named_and_is_gone_when_it_ends(path: Path) -> None:
    assert holder_of(path) is None  # there is no file
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    seen = holder_of(path)
    holder.communicate("\n")
    assert seen is not None
    assert seen.process.startswith(f"process {holder.pid} on ")
    assert seen.work == "python -m engine bert-tiny cpu"
    assert seen.since is not None
    assert timedelta(0) <= datetime.now(UTC) - seen.since < timedelta(minutes=5)
    assert holder_of(path) is None  # its file is still there


def test_a_look_leaves_the_device_free(path: Path) -> None:
    with held(path, "cpu"):
        assert holder_of(path) is not None
    assert holder_of(path) is None
    with held(path, "cpu"):
        pass


def test_what_was_written_is_one_bounded_line_of_plain_text() -> None:
    hostile = "run\x1b]0;title\x07 1\r\n\u202e<b>" + "x" * 10_000
    seen = written(work=hostile, host=hostile, since=hostile)
    assert seen.since is None
    assert len(seen.work) <= WORK_LENGTH
    assert len(seen.process) <= len("process 546 on ") + HOST_LENGTH
    assert (seen.work + seen.process).isprintable()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 2_000, b'{"pid": -1}', b'{"pid": true}'])
def test_a_holder_that_does_not_describe_itself_is_another_process(content: bytes) -> None:
    assert described(content) == Holder()


def test_a_moment_to_come_is_none_of_its_beginning() -> None:
    later = datetime.now(UTC) + timedelta(days=2)
    assert written(since=f"{later:%Y-%m-%d %H:%M:%S} UTC").since is None


@pytest.mark.skipif(sys.platform == "win32", reason="has no FIFO")
def test_what_is_no_file_is_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    assert holder_of(path) is None


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "other.lock"
    path.symlink_to(target)
    with held(target, "cpu"):
        assert holder_of(path) is None
