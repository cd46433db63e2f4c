"""The config file of a command is read and copied, and stays as it is."""

import os
import sys
import time
from pathlib import Path

import pytest

from engine.errors import SpecError
from engine.tune.spec import TuneSpec
from engine.tune.start.command import begin_command
from engine.tune.start.config_file import config_copy, number_in_config
from engine.tune.start.launch import Place, Watching

TEXT = b"# as it was\r\ntrain:\r\n  batch_size: 8\r\n"


def spec_of(folder: Path, key: str = "train.batch_size", file: str = "config.yaml") -> TuneSpec:
    return TuneSpec(("cat", file), batch="config", batch_in=f"{file}:{key}", directory=str(folder))


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("start")
    (folder / "out").mkdir()
    (folder / "notes").mkdir()
    return Place(folder / "notes", folder / "out", folder / "log")


def started(spec: TuneSpec, place: Place) -> bytes:
    """What a start prints."""
    running, until = begin_command(spec, 16, Watching(1), place), time.monotonic() + 60
    while not running.has_ended() and time.monotonic() < until:
        time.sleep(0.05)
    assert running.end() == 0, place.log.read_text()
    return place.log.read_bytes()


def test_a_start_is_given_the_copy(tmp_path: Path, place: Place) -> None:
    (tmp_path / "config.yaml").write_bytes(TEXT)
    assert started(spec_of(tmp_path), place) == TEXT.replace(b"8", b"16")
    assert (tmp_path / "config.yaml").read_bytes() == TEXT
    assert number_in_config(spec_of(tmp_path)) == 8


IMPORTS = """\
import sys
from importlib import import_module
from pathlib import Path
path = Path(sys.argv[1])
sys.path.insert(0, str(path.parent))
print(import_module(path.stem).train)
"""


def test_a_config_finds_what_lies_beside_it_and_nothing_of_its_copy_is_left(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/base.txt").write_text("the base")
    config = tmp_path / "conf/run.py"
    config.write_text("import pathlib\ntrain = [8, pathlib.Path(__file__).with_name('base.txt').read_text()]\n")
    command = (sys.executable, "-c", IMPORTS, "conf/run.py")
    spec = TuneSpec(command, batch="config", batch_in="conf/run.py:train.0", directory=str(tmp_path))
    assert started(spec, place) == b"[16, 'the base']\n"
    assert {path.name for path in tmp_path.rglob("*")} == {"conf", "base.txt", "run.py", "__pycache__"}


def test_a_copy_that_a_killed_run_left_is_removed_and_that_of_another_run_is_not(tmp_path: Path, place: Place) -> None:
    (tmp_path / "config.yaml").write_bytes(TEXT)
    with config_copy(spec_of(tmp_path), 16, place) as copy:
        assert copy is not None
        of_others = [tmp_path / copy.replace(f"_{os.getpid()}_", f"_{pid}_") for pid in (2**22 + 1, os.getppid())]
        for each in of_others:
            each.touch()
        with config_copy(spec_of(tmp_path), 32, place) as second:
            assert {path.name for path in tmp_path.iterdir()} == {"config.yaml", copy, second, of_others[1].name}


def test_a_copy_that_cannot_lie_beside_its_file_lies_in_the_folder_of_the_start(tmp_path: Path, place: Place) -> None:
    file = f"{'a' * 250}.yaml"  # with anything before it, it is too long for a file system
    (tmp_path / file).write_bytes(TEXT)
    said, _, copied = started(spec_of(tmp_path, file=file), place).partition(b"\n")
    assert copied == TEXT.replace(b"8", b"16")
    assert said.startswith(b"MemoryMark: no copy can be written beside aaa")


@pytest.mark.parametrize(
    ("content", "file", "message"),
    [
        (b"train: {batch_size: auto}", "config.yaml", "config.yaml: train.batch_size is 'auto', no whole number"),
        (b"batch_size: 8", "config.yaml", "config.yaml: has no train.batch_size; nearest: batch_size"),
        (b"\xff", "config.yaml", "config.yaml: 'utf-8' codec can't decode"),
        (b"", "other.yaml", "other.yaml: cannot be read: No such file"),
        (b" " * 5_000_000, "config.yaml", "config.yaml: has more than 4 MB"),
    ],
)
def test_a_config_file_without_the_number_is_refused_by_its_name(
    tmp_path: Path, content: bytes, file: str, message: str
) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(SpecError, match=f"^batch_in: {message}"):
        number_in_config(spec_of(tmp_path, file=file))
