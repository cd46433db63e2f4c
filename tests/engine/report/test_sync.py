"""`memorymark sync`: what a folder holds is in the portal once, however often and however badly it is sent."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.cli.main import main
from engine.report import sync as sync_module
from engine.report.files import EventWriter
from engine.report.protocol import RESULT_BYTES_MOST
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal, serving

KEYS = ["a1" * 16, "b2" * 16, "c3" * 16]


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch, portal: LoopbackPortal) -> LoopbackPortal:
    monkeypatch.setenv("MEMORYMARK_REPORT_TO", portal.url)
    return portal


@pytest.fixture
def synced(capsys, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str]]]:
    """Run the command without its pauses; its exit status and its lines."""
    monkeypatch.setattr(sync_module, "time", SimpleNamespace(sleep=lambda _: None))

    def run(*arguments: Any, token: str = TOKEN) -> tuple[int, list[str]]:
        monkeypatch.setenv("MEMORYMARK_TOKEN", token)
        status = main(["sync", *map(str, arguments)])
        output = capsys.readouterr()
        return status, (output.out + output.err).splitlines()

    return run


def log(number: int) -> dict[str, Any]:
    return {"event": "log", "seconds": float(number), "level": "info", "message": f"line {number}"}


def write_events(
    folder: Path, key: str, count: int = 3, *, events: Sequence[dict[str, Any]] = (), failed: bool = False
) -> Path:
    path = folder / f"{key}.events.jsonl"
    announcement = {"run_key": key, "kind": "measurement", "host": "node7", "spec": {}, "engine_version": "1"}
    writer = EventWriter(path, announcement)
    for event in events or [log(number) for number in range(count)]:
        writer.write(event)
    if failed:
        writer.write({"event": "error", "seconds": 9.0, "error": {"code": "workload_failed", "message": "no"}})
    writer.close()
    return path


def write_result(folder: Path, key: str) -> Path:
    path = folder / f"{key}.json"
    result = {"spec": {}, "device": {}, "environment": {"run_key": key}}
    path.write_text(json.dumps({"exit_status": 0, "result": result}))
    return path


def test_everything_is_sent_once_and_then_known(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    for key in KEYS[:2]:
        write_events(tmp_path, key, 1_200)
        write_result(tmp_path, key)
    failed = write_events(tmp_path, KEYS[2], failed=True)
    page = f"{portal.url}/runs/812/"
    first = [f"sent: {failed} ({page})", *(f"sent: {tmp_path / key}.json ({page})" for key in KEYS[:2])]
    assert synced(tmp_path) == (0, first)
    assert synced(tmp_path) == (0, [line.replace("sent:", "known:") for line in first])
    assert [len(portal.events[key]) for key in KEYS] == [1_200, 1_200, 4]
    assert sorted(portal.results.values()) == sorted((tmp_path / f"{key}.json").read_bytes() for key in KEYS[:2])


def test_only_what_is_missing_is_sent(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    write_events(tmp_path, KEYS[0], 10, failed=True)
    portal.announced[KEYS[0]], portal.events[KEYS[0]] = {}, [log(number) for number in range(7)]
    assert synced(tmp_path)[0] == 0
    assert [each["seconds"] for each in portal.events[KEYS[0]]] == [*map(float, range(10)), 9.0]


def test_a_sync_that_was_ended_goes_on_with_what_is_missing(portal: Any, synced: Any, tmp_path: Path) -> None:
    for number in range(700):
        write_result(tmp_path, f"{number:032x}")
    first, *rest = sorted(tmp_path.iterdir())
    portal.results = {hashlib.sha256(path.read_bytes()).hexdigest(): path.read_bytes() for path in rest}
    status, lines = synced(tmp_path)
    assert (status, len(lines)) == (0, 700)
    assert f"sent: {first} ({portal.url}/runs/812/)" in lines
    assert [path for path, _ in portal.calls] == ["/api/v1/results/known/"] * 2 + ["/api/v1/results/"]


def test_late_events_of_a_result_that_is_there_are_sent(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    write_events(tmp_path, KEYS[0], 10)
    portal.announced[KEYS[0]], portal.events[KEYS[0]] = {}, [log(number) for number in range(7)]
    result = write_result(tmp_path, KEYS[0])
    portal.results = {hashlib.sha256(result.read_bytes()).hexdigest(): result.read_bytes()}
    assert synced(tmp_path) == (0, [f"known: {result} ({portal.url}/runs/812/)"])
    assert portal.events[KEYS[0]] == [log(number) for number in range(10)]
    calls = len(portal.calls)
    assert synced(tmp_path)[0] == 0
    assert portal.calls[calls:] == [("/api/v1/results/known/", 200)]


def test_a_portal_that_cannot_say_what_it_has_is_sent_all(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    portal.can_say_what_it_has = False
    result = write_result(tmp_path, KEYS[0])
    assert synced(tmp_path) == (0, [f"sent: {result} ({portal.url}/runs/812/)"])
    assert synced(tmp_path) == (0, [f"known: {result} ({portal.url}/runs/812/)"])


def test_answers_that_are_lost_double_nothing(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    write_events(tmp_path, KEYS[0], 1_200)
    write_result(tmp_path, KEYS[0])
    portal.fault = lambda _path, number: ("die", "garbage", None)[number % 3]
    assert synced(tmp_path)[0] == 0
    assert portal.events[KEYS[0]] == [log(number) for number in range(1_200)]
    assert len(portal.results) == 1


def test_refused_document_is_named_with_both_values(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    good, bad = write_result(tmp_path, KEYS[0]), write_result(tmp_path, KEYS[1])
    errors = [{"field": "boundary.largest_batch_size", "claimed": 64, "allowed": 32}]
    portal.fault = lambda _path, number: (422, {"detail": "It claims more.", "errors": errors}) if number == 2 else None
    status, lines = synced(good, bad)
    assert status == 8
    claim = "boundary.largest_batch_size: 64, allowed 32"
    assert lines == [f"sent: {good} ({portal.url}/runs/812/)", f"refused: {bad} (refused with 422: {claim})"]


def test_a_result_that_no_portal_takes_is_refused_here_and_the_rest_is_sent(
    portal: LoopbackPortal, synced: Any, tmp_path: Path
) -> None:
    """A portal refuses it by its length, unread, and hangs up amid the body: to its sender it would look away."""
    large, small = write_result(tmp_path, KEYS[0]), write_result(tmp_path, KEYS[1])
    large.write_bytes(large.read_bytes() + b" " * RESULT_BYTES_MOST)
    status, lines = synced(tmp_path)
    assert status == 8
    assert any(line.startswith(f"refused: {large} (refused with 413: ") for line in lines)
    assert any(line.startswith(f"sent: {small}") for line in lines)
    assert [path for path, _ in portal.calls].count("/api/v1/results/") == 1


def test_portal_that_is_away_is_said_for_each_document_and_waited_for_once(synced: Any, tmp_path: Path) -> None:
    with serving(LoopbackPortal()) as gone:
        url = gone.url
    for key in KEYS:
        write_result(tmp_path, key)
    status, lines = synced(tmp_path, "--report-to", url)
    assert status == 8
    assert [line.partition(" (")[0] for line in sorted(lines)] == [
        f"not reachable: {tmp_path / key}.json" for key in KEYS
    ]
    assert [line.endswith(" (for the same reason)") for line in lines] == [False, *[True] * (len(KEYS) - 1)]


def test_portal_that_is_away_for_a_moment_is_waited_for(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    write_result(tmp_path, KEYS[0])
    portal.fault = lambda _path, number: (429, {}) if number < 3 else None
    assert synced(tmp_path)[0] == 0
    assert [status for _, status in portal.calls] == [429, 429, 429, 200, 201]


def test_half_written_and_foreign_files_are_named_and_left_out(portal: Any, synced: Any, tmp_path: Path) -> None:
    good = write_result(tmp_path, KEYS[0])
    (tmp_path / "half.json").write_text('{"exit_status": 0, "resu')
    (tmp_path / "other.json").write_text('{"loss": 0.3}')
    (tmp_path / "x.json.partial").write_text("{")
    (tmp_path / "y.events.jsonl").write_text('{"event": "started"}\n')
    (tmp_path / "notes.txt").write_text("mine")
    status, lines = synced(tmp_path)
    assert status == 0
    assert sorted(lines) == [
        f"sent: {good} ({portal.url}/runs/812/)",
        f"skipped: {tmp_path}/half.json (it is half-written, or no JSON)",
        f"skipped: {tmp_path}/notes.txt (it is no file of a run)",
        f"skipped: {tmp_path}/other.json (it is no result of a run)",
        f"skipped: {tmp_path}/x.json.partial (it is half-written)",
        f"skipped: {tmp_path}/y.events.jsonl (its first line announces no run)",
    ]
    assert len(portal.results) == 1


def test_events_of_a_killed_run_are_sent_as_far_as_they_are_complete(portal: Any, synced: Any, tmp_path: Path) -> None:
    path = write_events(tmp_path, KEYS[0])
    with path.open("ab") as file:
        file.write(b'{"event": "log", "seco')
    status, [line] = synced(tmp_path)
    assert (status, portal.events[KEYS[0]]) == (0, [log(0), log(1), log(2)])
    assert "without an end: it was stopped, or goes on" in line


def test_result_of_a_run_without_a_report_is_sent_too(portal: LoopbackPortal, synced: Any, tmp_path: Path) -> None:
    path = tmp_path / "nightly.json"
    path.write_text('{"spec": {}, "device": {}, "environment": {}}')
    assert synced(path)[0] == 0
    assert list(portal.results.values()) == [path.read_bytes()]


@pytest.mark.parametrize(
    ("arguments", "token", "said"),
    [
        (("nowhere",), TOKEN, "error: folder: there is no nowhere"),
        ((".", "--report-to", "lab"), TOKEN, "error: --report-to: must be the address of a portal"),
        ((".",), "", "error: token: MEMORYMARK_TOKEN is not set"),
    ],
)
@pytest.mark.usefixtures("portal")
def test_what_cannot_be_sent_to_is_a_bad_argument(synced: Any, arguments: Any, token: str, said: str) -> None:
    status, [line] = synced(*arguments, token=token)
    assert (status, line[: len(said)]) == (2, said)
