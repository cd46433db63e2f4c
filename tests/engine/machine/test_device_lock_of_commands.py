"""Two command lines do not work on one device at a time, and the second one says who does."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import DeviceBusy, DeviceUnavailable
from engine.facts.result import DeviceFacts
from engine.machine import device_lock
from engine.machine.device_lock import (
    INHERITED,
    held,
    held_for_command,
    inherited_by_child,
    inherited_locks,
    lock_path,
)
from engine.questions.size import measure
from engine.settings.spec import RunSpec

ROOT = Path(__file__).resolve().parents[3]
CPU = DeviceFacts("cpu", "cpu", "Test CPU", 2**30)
HOLDER_BEGINS = (
    "import os, subprocess, sys\nfrom pathlib import Path\nfrom engine.machine.device_lock import held\n"
    "with held(Path(sys.argv[1]), 'cpu') as lock:"
)
HOLDER = f"{HOLDER_BEGINS}\n    print('held', flush=True)\n    input()\nprint('released')"
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
QUICK = ("bert-tiny", "cpu", "--sequence-length", "8", "--max", "1", "--no-estimate")

linux = pytest.mark.skipif(sys.platform != "linux", reason="who holds a lock is read from /proc")


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMORYMARK_LOCK_DIR", str(tmp_path))


def path_of_cpu() -> Path:
    return lock_path(device="cpu", uuid=None)


def engine(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options)


def test_who_holds_a_device_is_named_with_what_for_and_since_when():
    words = rf"cpu is busy: process {os.getpid()} on .+ \(run 12, since 20.* UTC\) works on it"
    with held(path_of_cpu(), "cpu", work="run 12"), pytest.raises(DeviceBusy, match=words), held(path_of_cpu(), "cpu"):
        pass


def test_a_command_waits_if_asked_to_and_says_so_once():
    said = []
    with held(path_of_cpu(), "cpu"):
        waiting = held_for_command(CPU, wait_seconds=0.2, on_wait=said.append)
        with pytest.raises(DeviceBusy), waiting:
            pass
    assert len(said) == 1
    assert "cpu is busy" in said[0]
    with held_for_command(CPU, wait_seconds=0.2, on_wait=said.append) as descriptor:
        assert os.path.samestat(os.fstat(descriptor), path_of_cpu().stat())
    assert len(said) == 1


def test_a_command_that_inherited_the_lock_goes_on_under_it(monkeypatch):
    with held(path_of_cpu(), "cpu") as descriptor:
        for name, value in inherited_by_child([descriptor]).items():
            monkeypatch.setenv(name, value)
        with held_for_command(CPU) as inherited:
            assert inherited == descriptor


def test_a_command_that_inherited_two_locks_takes_neither_device_again(monkeypatch, tmp_path):
    with held(path_of_cpu(), "cpu") as first, held(tmp_path / "other.lock", "cuda:0") as second:
        for name, value in inherited_by_child([first, second]).items():
            monkeypatch.setenv(name, value)
        assert inherited_locks() == (first, second)
        with held_for_command(CPU) as inherited:
            assert inherited == first


@pytest.mark.parametrize("value", ["none", "-1", "987654", "0,987654"])
def test_a_lock_that_was_not_really_inherited_is_taken(monkeypatch, value):
    monkeypatch.setenv(INHERITED, value)
    with held(path_of_cpu(), "cpu"), pytest.raises(DeviceBusy), held_for_command(CPU):
        pass


def overwrite(content: bytes) -> None:
    path_of_cpu().write_bytes(content)


@linux
@pytest.mark.parametrize("claims", [{"pid": 999_999_999, "started": "1"}, {"pid": 1, "started": "1"}])
def test_what_somebody_wrote_into_the_lock_kills_no_honest_holder(claims):
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path_of_cpu())], cwd=ROOT, **PIPES) as holder:
        assert holder.stdout.readline() == "held\n"
        signed = json.loads(path_of_cpu().read_bytes())
        overwrite(json.dumps({**signed, **claims}).encode())
        with pytest.raises(DeviceBusy), held(path_of_cpu(), "cpu", wait_seconds=0.2):
            pass
        assert holder.communicate("\n")[0] == "released\n"


@linux
def test_what_somebody_wrote_into_the_lock_saves_no_process_of_a_dead_holder():
    leaves = (
        f"{HOLDER_BEGINS}\n    left = subprocess.Popen(['sleep', '60'], pass_fds=[lock], stdout=subprocess.DEVNULL)\n"
        "    print(left.pid, flush=True)\n    os._exit(0)"
    )
    left = [sys.executable, "-c", leaves, str(path_of_cpu())]
    orphan = int(subprocess.run(left, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    signed = json.loads(path_of_cpu().read_bytes())
    overwrite(json.dumps({**signed, "pid": os.getpid(), "started": device_lock._started(os.getpid())}).encode())
    with held(path_of_cpu(), "cpu", wait_seconds=5):
        assert device_lock._started(orphan) is None


def test_what_is_no_file_is_no_lock():
    os.mkfifo(path_of_cpu())
    with pytest.raises(DeviceUnavailable, match="no regular file: remove it"), held(path_of_cpu(), "cpu"):
        pass


def test_what_the_lock_says_of_its_holder_is_one_short_line_without_control_characters():
    with held(path_of_cpu(), "cpu"):
        overwrite(json.dumps({"pid": "\x1b[2J" * 99, "host": "node\n7", "work": ["\x1b]0;x\x07"] * 20}).encode())
        with pytest.raises(DeviceBusy) as busy, held(path_of_cpu(), "cpu"):
            pass
    assert str(busy.value).isprintable()
    assert len(str(busy.value)) < 1_000


@pytest.mark.slow
def test_a_second_command_line_is_refused_with_4_before_it_measures_anything_and_the_first_s_engine_is_not():
    with held(path_of_cpu(), "cpu", work="python -m engine resnet") as descriptor:
        refused = engine(*QUICK, "--events")
        inherits = engine(
            *QUICK, "--json", pass_fds=[descriptor], env={**os.environ, **inherited_by_child([descriptor])}
        )
    assert (refused.returncode, inherits.returncode) == (4, 0)
    events = [json.loads(line) for line in refused.stdout.splitlines()]
    *stages, refusal = events  # what it imports before it knows the device
    assert {event["event"] for event in stages} <= {"stage"}
    assert refusal["error"]["code"] == "device_busy"
    assert "(python -m engine resnet, since" in refused.stderr
    assert "--wait-for-device waits" in refused.stderr


@pytest.mark.slow
def test_the_device_is_held_by_what_it_is_called_while_the_run_goes_on_and_free_afterwards():
    seen = []

    @contextmanager
    def hold(facts):
        with held_for_command(facts):
            seen.append(facts.device)
            yield

    def look(event):
        if event["event"] == "phase":
            with pytest.raises(DeviceBusy), held(path_of_cpu(), "cpu"):
                pass
            seen.append(event["phase"])

    measure(RunSpec("bert-tiny", sequence_length=8, max_batch_size=1), look, estimates=False, hold=hold)
    assert seen[:2] == ["cpu", "preparing"]
    with held(path_of_cpu(), "cpu"):
        pass
