"""A temporary folder is removed, by its own process or by the next one that makes one."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from engine.machine.scratch import scratch_folder

ROOT = Path(__file__).parents[3]
HOLDER = (
    "import time\nfrom engine.machine.scratch import scratch_folder\n"
    "with scratch_folder() as path:\n    print(path, flush=True)\n    time.sleep(600)"
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    with scratch_folder() as path:
        Path(path, "notes").mkdir()
        assert Path(path).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            other = Path(process.stdout.readline().strip())
            with scratch_folder():
                assert other.exists()
        finally:
            process.send_signal(signal.SIGKILL)
    assert other.exists()
    with scratch_folder() as path:
        assert [str(each) for each in tmp_path.iterdir()] == [path]


def test_a_folder_that_is_no_scratch_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "memorymark-locks").mkdir()
    with scratch_folder():
        pass
    assert (tmp_path / "memorymark-locks").exists()
