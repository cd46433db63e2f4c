"""The output of failed starts: each run has a file of its own, and the oldest are removed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.trainings.script.start.kept_log import MOST_KEPT, kept_log


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_another_run_does_not_overwrite_the_output_that_this_one_named(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "other").write_text("other")
    kept = kept_log(tmp_path / "mine")
    imports = "import pathlib; from engine.trainings.script.start.kept_log import kept_log"
    program = f"{imports}; print(kept_log(pathlib.Path('other')))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert kept is not None
    assert (kept.read_text(), Path(done.stdout.strip()).read_text()) == ("mine", "other")


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "memorymark"
    folder.mkdir(parents=True)
    for age in range(MOST_KEPT):
        earlier = folder / f"failed-start-{age}.log"
        earlier.write_text("")
        os.utime(earlier, (1_000_000 - age, 1_000_000 - age))
    (folder / "other.log").write_text("")
    (tmp_path / "log").write_text("")
    kept = kept_log(tmp_path / "log")
    left = {each.name for each in folder.iterdir()}
    assert kept is not None
    assert left >= {kept.name, "other.log", "failed-start-0.log"}
    assert (len(left), f"failed-start-{MOST_KEPT - 1}.log" in left) == (MOST_KEPT + 1, False)
