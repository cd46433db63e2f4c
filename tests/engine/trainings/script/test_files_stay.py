"""What lay in a script's folder before a start lies there after it, whatever the script does and however it ends."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.trainings.script.notes.file_changes import FileChanges
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.guard.layers import is_below
from engine.trainings.script.start.guard.saved import MOST_COPIED_BYTES, PREFIX, recover
from engine.trainings.script.start.launch import Place, Watching
from engine.trainings.script.start.protection import GUARDIAN, Protection, Way, protection_of
from tests.engine.trainings.script.destroyers import (
    LIBRARIES,
    MOVE_FOLDERS,
    QUICK,
    SLOW,
    make_folder,
    state_of,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="layers and filters are Linux's")
BOTH = pytest.mark.parametrize("way", [Way.LAYERS, Way.SAVING])
KILLS = 8


def guarded(way: Way, script: str, root: Path, folder: Path, outputs: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a script in a folder as a start is."""
    own = root / "own"
    (own / "out").mkdir(parents=True, exist_ok=True)
    settings = Protection(way, outputs=outputs).settings(own, 8, str(folder), {})
    settings["journals"] = str(root / "journals")
    command = [sys.executable, "-I", str(GUARDIAN), json.dumps(settings), sys.executable, "-c", script]
    return subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(way: Way, script: str, tmp_path: Path, outputs: Path | None = None) -> tuple[bytes, FileChanges]:
    """Run a script to its end; its exit status as it is told, and what it did."""
    project = tmp_path / "there" / "project"
    process = guarded(way, script, tmp_path, project, outputs)
    assert process.stdout is not None
    answer = process.stdout.read()  # its input stays open: it would end with it
    process.communicate(timeout=120)
    assert process.returncode == 0
    return answer.strip(), FileChanges.read(tmp_path / "own")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    make_folder(tmp_path / "there")
    return tmp_path / "there"


@BOTH
@pytest.mark.parametrize("what", QUICK)
def test_files_are_as_before_though_a_script(what: str, way: Way, there: Path, tmp_path: Path) -> None:
    before = state_of(there)
    status, changes = run(way, QUICK[what], tmp_path)
    assert (status, changes.left, changes.refused) == (b"0", (), "")
    assert any(path.startswith(str(there)) for _, path in changes.files)
    assert state_of(there) == before


@pytest.mark.slow
@pytest.mark.each_value
@BOTH
@pytest.mark.parametrize("what", [*SLOW, *LIBRARIES])
def test_files_are_as_before_though_another_script(what: str, way: Way, there: Path, tmp_path: Path) -> None:
    if way is Way.LAYERS and os.geteuid() != 0 and what in MOVE_FOLDERS:
        pytest.skip("a user namespace cannot move a folder of a lower layer")
    before = state_of(there)
    status, changes = run(way, {**SLOW, **LIBRARIES}[what], tmp_path)
    assert (status, changes.left, changes.refused) == (b"0", (), "")
    assert state_of(there) == before


@pytest.mark.slow
@pytest.mark.each_value
@BOTH
@pytest.mark.parametrize("victim", ["script", "tune", "guardian"])
def test_files_are_as_before_though_it_is_killed_at_any_moment(
    victim: str, way: Way, there: Path, tmp_path: Path
) -> None:
    before, chance = state_of(there), random.Random(victim)
    each = "import contextlib\nfor each in {!r}:\n with contextlib.suppress(Exception): exec(each)"
    script = each.format([text for name, text in (QUICK | SLOW).items() if "daemon" not in name])
    for _ in range(KILLS):
        process = guarded(way, script, tmp_path, there / "project")
        time.sleep(chance.uniform(0.1, 0.8))
        if victim == "tune":  # the guardian sees the end of its input
            process.communicate(timeout=60)
        elif victim == "guardian":
            process.kill()
            process.communicate(timeout=60)
            assert recover(tmp_path / "journals") == []
        else:
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
            process.communicate(timeout=60)
        assert state_of(there) == before


def test_files_are_as_before_though_putting_them_back_is_killed_again_and_again(there: Path, tmp_path: Path) -> None:
    before, ended = state_of(there), there / "project" / "ended"
    held = os.open(there / "project" / "output", os.O_RDONLY)  # what is made in its place gets another inode
    # what was put back is not undone with what the script made in its place
    script = [SLOW[name] for name in ("moves the folder away and makes it anew", "replaces a link", "removes all")]
    process = guarded(
        Way.SAVING,
        "\n".join([*script, f"open({str(ended)!r}, 'w')\nimport time\ntime.sleep(600)"]),
        tmp_path,
        there / "project",
    )
    wait_until(ended.exists)
    process.kill()
    process.communicate(timeout=60)
    kills = list(itertools.takewhile(bool, (recover_until_a_change(tmp_path / "journals") for _ in range(100))))
    os.close(held)
    assert 5 < len(kills) < 100
    assert state_of(there) == before


def recover_until_a_change(journals: Path) -> bool:
    """Recover in a process that ends before its second change of files; whether it ended so."""
    if (pid := os.fork()) == 0:
        changes = itertools.count(1)

        def end_early(event: str, _: tuple[object, ...]) -> None:
            if event in ("os.rename", "os.remove", "os.rmdir") and next(changes) == 2:
                os._exit(1)

        sys.addaudithook(end_early)
        try:
            os._exit(0 if recover(journals) == [] else 2)
        finally:
            os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, 1)
    return status == 1


@pytest.mark.slow
def test_what_a_start_put_into_a_session_of_its_own_ends_though_its_guardian_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "notes", tmp_path / "out", tmp_path / "log")
    for folder in (place.notes, place.out):
        folder.mkdir()
    spec = TuneSpec(("sh", "-c", "setsid sleep 600 & echo {batch_size} > $MEMORYMARK_STARTED; sleep 600"))
    monkeypatch.setenv("MEMORYMARK_STARTED", str(tmp_path / "started"))
    running = begin_command(spec, 8, Watching(3), place)
    wait_until((tmp_path / "started").exists)
    running.process.kill()
    running.end()
    left = [each for each in Path("/proc").glob("[0-9]*/environ") if os.fsencode(place.notes) in environ_of(each)]
    assert not left


def environ_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@BOTH
def test_what_was_written_is_copied_where_it_is_wanted(way: Way, there: Path, tmp_path: Path) -> None:
    run(way, "open('output/model.pt', 'w').write('new')\nopen('more', 'w').write('x')", tmp_path, tmp_path / "kept")
    kept = tmp_path / "kept" / "start-1-batch-8"
    assert {str(p.relative_to(kept)): p.read_text() for p in kept.rglob("*") if p.is_file()} == {
        "output/model.pt": "new",
        "more": "x",
    }


@BOTH
def test_it_is_told_what_was_changed(way: Way, there: Path, tmp_path: Path) -> None:
    _, changes = run(way, "import os\nos.remove('log.txt')\nopen('run.sh', 'w')\nopen('new', 'w')", tmp_path)
    project = str(there / "project")
    assert set(changes.files) == {
        ("removed", f"{project}/log.txt"),
        ("overwritten", f"{project}/run.sh"),
        ("new", f"{project}/new"),
    }
    assert changes.written(project) == ("new", "run.sh")
    assert {"log.txt removed", "run.sh overwritten"} == set(changes.describe(project).partition(": ")[2].split(", "))


@BOTH
def test_caches_may_grow(way: Way, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    run(way, f"open({str(tmp_path / 'cache' / 'weights')!r}, 'w').write('downloaded')", tmp_path)
    assert (tmp_path / "cache" / "weights").read_text() == "downloaded"


def test_a_file_that_is_too_large_to_copy_ends_the_start_before_it_changes(there: Path, tmp_path: Path) -> None:
    large = there / "project" / "large.bin"
    with large.open("wb") as file:
        file.truncate(MOST_COPIED_BYTES + 1)
    script = "import os, time\nos.remove('run.sh')\nopen('large.bin', 'r+b').write(b'x')\ntime.sleep(60)"
    before = state_of(there)
    _, changes = run(Way.SAVING, script, tmp_path)
    assert "large.bin" in changes.refused
    assert state_of(there) == before
    with pytest.raises(Exception, match=r"large\.bin.*\{out\}.*--may-overwrite"):
        changes.check()
    _, changes = run(Way.LAYERS, "open('large.bin', 'w')", tmp_path)  # emptied: nothing is copied
    assert changes.refused == ""


@pytest.mark.slow
def test_two_runs_do_not_save_the_same_folder_at_once(there: Path, tmp_path: Path) -> None:
    before, project = state_of(there), there / "project"
    script = "import time\nopen('log.txt', 'w').write('x')\nopen('written', 'w')\ntime.sleep(600)"
    first = guarded(Way.SAVING, script, tmp_path, project)
    wait_until((project / "written").exists)
    _, changes = run(Way.SAVING, "open('log.txt', 'w')", tmp_path)
    first.communicate(timeout=60)
    assert "another run saves files" in changes.refused
    assert state_of(there) == before


def test_nothing_is_left_beside_the_files(there: Path, tmp_path: Path) -> None:
    run(Way.SAVING, "import shutil\nshutil.rmtree('output')", tmp_path)
    assert not list(tmp_path.rglob(f"{PREFIX}*"))
    assert {path.suffix for path in (tmp_path / "journals").iterdir()} == {".lock"}


def test_the_best_way_is_tried_before_the_first_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = TuneSpec(("python", "train.py", "{batch_size}"), directory=str(tmp_path))
    assert protection_of(spec).way in (Way.LAYERS, Way.SAVING)
    monkeypatch.setenv("MEMORYMARK_PROTECTION", "saving")
    assert protection_of(spec).way is Way.SAVING
    assert protection_of(spec, may_overwrite=True).way is Way.NOTHING
    assert not list(tmp_path.iterdir())


def test_a_folder_is_below_itself_and_its_parents_alone() -> None:
    assert is_below("/a/b", ["/a"])
    assert is_below("/a", ["/"])
    assert not is_below("/ab", ["/a"])
