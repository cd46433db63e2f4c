"""A memory snapshot is read without running what it may hold."""

import json
import os
import pickle
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.text.units import GIB, MIB

FRAMES = [
    {"filename": "/venv/torch/nn/functional.py", "line": 9, "name": "linear"},
    {"filename": "train.py", "line": 12, "name": "step"},
]


def block(size: int, state: str, **more: object) -> dict:
    return {"address": 0, "size": size, "state": state, **more}


def snapshot(asked_bytes: int) -> dict:
    blocks = [block(2 * GIB, "active_allocated", frames=FRAMES), block(3 * GIB, "inactive")]
    oom = {"action": "oom", "size": asked_bytes, "device_free": 10 * MIB}
    return {"segments": [{"total_size": 5 * GIB, "blocks": blocks}], "device_traces": [[oom]]}


def said(path: Path, content: object, capsys: pytest.CaptureFixture[str]) -> dict:
    path.write_bytes(pickle.dumps(content))
    assert main(["explain", str(path), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_memory_in_pieces_is_told_with_the_line_that_made_what_is_live(tmp_path: Path, capsys) -> None:
    found = said(tmp_path / "m.pickle", snapshot(GIB), capsys)
    assert (found["cause"], found["figures"]["in_pieces_bytes"]) == ("in_pieces", 3 * GIB)
    assert found["places"] == [{"place": "train.py:12 in step", "bytes": 2 * GIB}]


def test_what_a_snapshot_does_not_show_is_not_claimed(tmp_path: Path, capsys) -> None:
    assert said(tmp_path / "m.pickle", snapshot(4 * GIB), capsys)["cause"] == "cannot_tell"


class Harmful:
    def __reduce__(self) -> tuple:
        return os.mkdir, ("harmed",)


@pytest.mark.parametrize("content", [Harmful(), 7, {"segments": [3]}, [{"blocks": 1}]])
def test_a_pickle_that_is_no_snapshot_is_refused_and_nothing_of_it_runs(
    content: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.pickle").write_bytes(pickle.dumps(content))
    assert main(["explain", "m.pickle"]) == 2
    assert "is no memory snapshot of torch" in capsys.readouterr().err
    assert not Path("harmed").exists()
