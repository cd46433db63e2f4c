"""A temporary folder is removed, by its own process or by the next one that makes one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from engine.machine.scratch import PREFIX, scratch_folder

ROOT = Path(__file__).parents[3]
HOLDER = (
    "import time\nfrom engine.machine.scratch import scratch_folder\n"
    "with scratch_folder() as path:\n    print(path, flush=True)\n    time.sleep(600)"
)
MAKER = "from engine.machine.scratch import scratch_folder\nwith scratch_folder():\n    pass"


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


def test_what_others_laid_into_the_temporary_folder_under_such_a_name_neither_hangs_nor_is_followed(
    tmp_path: Path,
) -> None:
    others = tmp_path / "of somebody else"
    (others / "notes").mkdir(parents=True)
    os.mkfifo(tmp_path / f"{PREFIX}fifo")
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(others)
    made = subprocess.run([sys.executable, "-c", MAKER], cwd=ROOT, timeout=30, check=False)  # would hang for ever
    assert made.returncode == 0
    assert (others / "notes").is_dir()
    assert {each.name for each in tmp_path.iterdir()} == {
        others.name,
        *(f"{PREFIX}{x}" for x in ("fifo", "file", "link")),
    }


def test_a_folder_that_takes_no_files_is_named_before_anything_is_started(tmp_path: Path) -> None:
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n{MAKER}"
    made = subprocess.run([sys.executable, "-c", limited], cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert f"{tmp_path} takes no file of 1 MiB: File too large; raise `ulimit -f`" in made.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder somebody else's")
def test_a_free_folder_of_another_user_is_left_to_them(tmp_path: Path) -> None:
    theirs = tmp_path / f"{PREFIX}theirs"
    theirs.mkdir()
    os.chown(theirs, 12_345, 12_345)
    with scratch_folder():
        assert theirs.exists()
