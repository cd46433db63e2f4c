"""The result in a file: whole or not at all, before it is said, and never in the way of the result itself."""

import io
import json
import os
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import SpecError
from engine.results.result_file import result_in, write_result
from engine.runner import measure
from engine.spec import RunSpec
from tests.engine.fake_worker import FakeWorker


def run(keep, events=None):
    return measure(
        RunSpec("bert-tiny"),
        (events if events is not None else []).append,
        worker=FakeWorker(20),
        keep=keep,
        estimates=False,
    )


def test_the_file_holds_the_exit_status_and_the_result_that_is_said(tmp_path):
    events: list[dict] = []
    run(lambda result: write_result(tmp_path / "result.json", 3, result), events)
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept == {"exit_status": 3, "result": json.loads(json.dumps(events[-1]["result"]))}
    assert os.listdir(tmp_path) == ["result.json"]


def test_the_file_is_there_before_the_result_is_said(tmp_path):
    path, was_there = tmp_path / "result.json", {}
    measure(
        RunSpec("bert-tiny"),
        lambda event: was_there.update({event["event"]: path.exists()}),
        worker=FakeWorker(20),
        estimates=False,
        keep=lambda result: write_result(path, 0, result),
    )
    assert (was_there["probe"], was_there["result"]) == (False, True)


def test_contents_and_rename_are_forced_to_the_disk_in_that_order(tmp_path, monkeypatch):
    done: list[str] = []
    kinds = {True: "folder", False: "file"}
    monkeypatch.setattr(os, "fsync", lambda fd: done.append(f"fsync {kinds[os.path.isdir(f'/proc/self/fd/{fd}')]}"))
    rename = Path.replace
    monkeypatch.setattr(Path, "replace", lambda old, new: (done.append("rename"), rename(old, new)))
    run(lambda result: write_result(tmp_path / "result.json", 0, result))
    assert done == ["fsync file", "rename", "fsync folder"]


@pytest.mark.parametrize("path", ["/dev/full/result.json", "/nowhere/result.json"])
def test_a_file_that_cannot_be_written_is_a_warning_and_the_result_comes_all_the_same(path):
    events: list[dict] = []
    result = run(lambda result: write_result(Path(path), 0, result), events)
    [warning] = [event for event in events if event["event"] == "log" and event["level"] == "warning"]
    assert "could not be written to a file" in warning["message"]
    assert events[-1]["result"] == result.to_dict()


def test_a_full_disk_leaves_an_earlier_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("earlier")
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    events: list[dict] = []
    run(lambda result: write_result(path, 0, result), events)
    assert path.read_text() == "earlier"
    assert any("No space left" in event.get("message", "") for event in events)


@pytest.mark.parametrize(
    "document", [{"spec": 1}, {"exit_status": 3, "result": {"spec": 1}}, {"id": 7, "result": {"spec": 1}}]
)
def test_a_result_alone_a_result_file_and_a_run_of_the_portal_hold_the_same_result(document):
    assert result_in(document, "result") == {"spec": 1}


@pytest.mark.parametrize("document", [None, 3, [], {"exit_status": 0, "result": "text"}, {"id": 7, "result": None}])
def test_what_holds_no_result_is_refused_by_its_field(document):
    with pytest.raises(SpecError, match="baseline: holds no result"):
        result_in(document, "baseline")


READERS = (["advise"], ["check", "--min-batch", "1"], ["fit", "--result"])


@pytest.mark.parametrize("content", [None, b"{", b"\xff", b"[3]", b'{"result": 3}'])
def test_every_command_that_reads_a_result_says_the_same_of_a_file_without_one(content, tmp_path, capsys):
    path = tmp_path / "result.json"
    if content is not None:
        path.write_bytes(content)
    said = set()
    for command in READERS if content != b"[3]" else READERS[1:]:  # to `advise` a list is of estimates
        assert main([*command, str(path)]) == SpecError.exit_status
        said.add(capsys.readouterr().err.replace("--result", "result"))  # of `fit` it is an option
    (error,) = said
    assert error.startswith("error: result: ")


@pytest.mark.parametrize("command", READERS)
def test_every_command_that_reads_a_result_takes_it_from_standard_input(command, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("3"))
    assert main([*command, "-"]) == SpecError.exit_status
    assert "holds no result" in capsys.readouterr().err
