"""Real measurements that are reported: a portal that goes away in the middle changes neither status nor result."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.cli.reporting import Reporting
from engine.report.address import Address
from engine.report.http import Portal
from engine.report.reporter import refusal_of
from engine.settings.spec import RunSpec
from engine.trainings.script.faster import starts
from tests.engine.quiet_machine import QuietMachine
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal, serving
from tests.engine.trainings.script.made_up_script import MadeUp
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
MEASURE = ("bert-tiny", "cpu", "--fits", "2", "--memory-limit", "512MiB", "--no-breakdown", "--json")
SCRIPT = """
import os, sys
assert "MEMORYMARK_TOKEN" not in os.environ, "the training inherits the token"
""" + (ROOT / "tests" / "engine" / "trainings" / "script" / "scripts" / "ten_lines.py").read_text()


def run(folder: Path, *arguments: str, url: str | None = None, token: str = TOKEN) -> tuple[int, Any, str]:
    reporting = {"MEMORYMARK_TOKEN": token} | ({} if url is None else {"MEMORYMARK_REPORT_TO": url})
    environment = {**os.environ, **reporting, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "engine", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout, done.stderr


COMMANDS = [
    ("measure", "bert-tiny", "cpu"),
    ("tune", "--device", "cpu", "--", sys.executable, "-c", "open('started', 'w')", "{batch_size}"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_token_that_the_portal_refuses_ends_the_command_before_anything_is_run(
    portal: LoopbackPortal, tmp_path: Path, command: tuple[str, ...]
) -> None:
    status, _, said = run(tmp_path, *command, url=portal.url, token="mm_p_mistyped")
    last = said.splitlines()[-1]
    assert (status, last) == (2, f"error: token: {portal.url} refused with 401: Not signed in.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", ["garbage", "die", (500, {}), (403, {}), (429, {"detail": "Slowly."})])
def test_a_portal_that_does_not_answer_as_one_refuses_no_run(portal: LoopbackPortal, fault: Any) -> None:
    portal.fault = lambda _path, _number: fault
    assert refusal_of(Portal(Address(portal.url, TOKEN))) is None


def test_the_command_that_sends_a_run_later_names_the_portal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(LoopbackPortal()) as gone:
        url = gone.url
    monkeypatch.setenv("MEMORYMARK_TOKEN", TOKEN)
    folder = tmp_path / "my runs"
    with Reporting(url, runs_dir=folder).run("measurement", RunSpec("bert-tiny"), lambda _: None):
        pass
    said = capsys.readouterr().err
    assert f"`python -m engine sync '{folder}' --report-to {url}` sends it later" in said


@pytest.mark.slow
def test_portal_that_goes_away_in_the_middle_changes_nothing_and_gets_it_later(portal: Any, tmp_path: Path) -> None:
    alone = run(tmp_path, *MEASURE)
    portal.fault = lambda _path, number: "hang" if number >= 2 else None
    status, result, said = run(tmp_path, *MEASURE, url=portal.url)
    assert (status, result["boundary"]) == (alone[0], alone[1]["boundary"])
    sync = f"python -m engine sync memorymark-runs --report-to {portal.url}"
    assert f"kept in memorymark-runs: `{sync}` sends it later" in said
    [stored] = (tmp_path / "memorymark-runs").glob("*.json")
    assert json.loads(stored.read_bytes()) == {"exit_status": status, "result": result}
    run_key = result["environment"]["run_key"]
    assert stored.name == f"{run_key}.json"
    portal.fault = lambda _path, _number: None
    for state in ("sent", "known"):
        status, printed, _ = run(tmp_path, *sync.split()[3:])
        assert (status, printed) == (0, f"{state}: {stored.relative_to(tmp_path)} ({portal.url}/runs/812/)\n")
    assert list(portal.results.values()) == [stored.read_bytes()]
    assert portal.announced[run_key]["spec"] == result["spec"]
    names = [event["event"] for event in portal.events[run_key]]
    assert names.count("started") == 1
    assert names[-1] == "phase"
    assert "result" not in names


@pytest.mark.slow
def test_run_that_is_cancelled_in_the_portal_ends_as_interrupted(portal: LoopbackPortal, tmp_path: Path) -> None:
    portal.cancels = True
    status, _, said = run(tmp_path, "bert-tiny", "cpu", "--memory-limit", "256MiB", url=portal.url)
    assert status == 130
    assert "cancelled in the portal\n" in said
    assert "No result is stored.\n" in said
    assert portal.results == {}


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_run_that_is_stopped_by_a_signal_ends_in_the_portal(portal: Any, tmp_path: Path, by: signal.Signals) -> None:
    command = [sys.executable, "-m", "engine", "bert-tiny", "cpu", "--memory-limit", "512MiB"]
    reporting = {"MEMORYMARK_REPORT_TO": portal.url, "MEMORYMARK_TOKEN": TOKEN}
    environment = {**os.environ, **reporting, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, by, signal.SIG_DFL),  # a shell's background job is started without Ctrl-C
    )
    try:
        events = portal.events.values
        wait_until(lambda: any(each["event"] == "probe" for run in events() for each in run), seconds=300)
        running.send_signal(by)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()
    [events] = portal.events.values()
    assert (running.returncode, events[-1]["error"]["code"]) == (128 + by, "stopped")
    assert f"reported: {portal.url}/runs/812/" in said.decode()


@pytest.mark.slow
def test_tuned_command_is_reported_and_does_not_see_the_token(portal: LoopbackPortal, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    own = ("tune", "--device", "cpu", "--max", "24", "--current-batch-size", "24", "--json", "--report-to", portal.url)
    status, result, said = run(tmp_path, *own, "--", sys.executable, "train.py", "{batch_size}", url=portal.url)
    assert (status, said.splitlines()[-1]) == (0, f"reported: {portal.url}/runs/812/")
    [announced] = portal.announced.values()
    assert (announced["kind"], announced["run_key"]) == ("command", result["environment"]["run_key"])
    [document] = portal.results.values()
    assert json.loads(document)["result"] == result


def test_a_race_of_a_script_is_reported_as_a_kind_of_its_own(
    portal: LoopbackPortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(starts, "start", MadeUp())
    monkeypatch.setattr(starts, "MachineWatch", QuietMachine)
    monkeypatch.setenv("MEMORYMARK_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    own = ["tune", "--faster", "--try", "fused", "--device", "cpu", "--json", "--report-to", portal.url]
    assert main([*own, "--", sys.executable, "train.py", "--api-key", "sk-a1b2c3d4e5f6a7b8c9d0"]) == 0
    result = json.loads(capsys.readouterr().out)
    [announced] = portal.announced.values()
    assert (announced["kind"], announced["run_key"]) == ("own_race", result["environment"]["run_key"])
    [document] = portal.results.values()
    assert json.loads(document)["result"] == result
    assert b"sk-a1b2" not in document
    names = {event["event"] for event in portal.events[announced["run_key"]]}
    assert names >= {"started", "device", "phase", "timing", "log"}


@pytest.mark.slow
def test_validation_is_reported_and_a_failed_run_says_why(portal: LoopbackPortal, tmp_path: Path) -> None:
    status, result, _ = run(tmp_path, "validate", "bert-tiny", "cpu", "--batch-size", "2", "--json", url=portal.url)
    assert (status, portal.announced[result["environment"]["run_key"]]["kind"]) == (0, "validation")
    status, _, said = run(tmp_path, "bert-tiny", "cuda:7", "--runs-dir", "other", url=portal.url)
    [stored] = (tmp_path / "other").glob("*.events.jsonl")
    *_, last = portal.events[stored.name.partition(".")[0]]
    assert (last["event"], last["error"]["exit_status"]) == ("error", status)
    assert last["error"]["message"] in said
