"""The config file of a command is read and copied, and stays as it is."""

import time
from pathlib import Path

import pytest

from engine.errors import SpecError
from engine.tune.spec import TuneSpec
from engine.tune.start.command import begin_command
from engine.tune.start.config_file import number_in_config
from engine.tune.start.launch import Place, Watching

TEXT = b"# as it was\r\ntrain:\r\n  batch_size: 8\r\n"


def spec_of(folder: Path, key: str = "train.batch_size", file: str = "config.yaml") -> TuneSpec:
    return TuneSpec(("cat", file), batch="config", batch_in=f"{file}:{key}", directory=str(folder))


def test_a_start_is_given_a_copy(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes(TEXT)
    place = Place(tmp_path / "notes", tmp_path / "out", tmp_path / "log")
    place.out.mkdir()
    running, until = begin_command(spec_of(tmp_path), 16, Watching(3), place), time.monotonic() + 60
    while not running.has_ended() and time.monotonic() < until:
        time.sleep(0.05)
    assert running.end() == 0
    assert place.log.read_bytes() == TEXT.replace(b"8", b"16")
    assert (tmp_path / "config.yaml").read_bytes() == TEXT
    assert number_in_config(spec_of(tmp_path)) == 8


@pytest.mark.parametrize(
    ("content", "file", "message"),
    [
        (b"train: {batch_size: auto}", "config.yaml", "config.yaml: train.batch_size is 'auto', no whole number"),
        (b"batch_size: 8", "config.yaml", "config.yaml: has no train.batch_size; nearest: batch_size"),
        (b"\xff", "config.yaml", "config.yaml: 'utf-8' codec can't decode"),
        (b"", "other.yaml", "other.yaml: cannot be read: No such file"),
    ],
)
def test_a_config_file_without_the_number_is_refused_by_its_name(
    tmp_path: Path, content: bytes, file: str, message: str
) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(SpecError, match=f"^batch_in: {message}"):
        number_in_config(spec_of(tmp_path, file=file))
