"""`watch --report-to`: the report is sent once the training has ended, and no portal changes how that ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal

ROOT = Path(__file__).parents[3]
DIES = """
import os, torch
assert "MEMORYMARK_TOKEN" not in os.environ, "the training inherits the token"
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters())
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
print("trained", flush=True)
{end}
"""
RAISES, IS_KILLED = "raise ValueError('no such column: age')", "os.kill(os.getpid(), 15)"


def run(folder: Path, url: str, *options: str, end: str = RAISES) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(DIES.format(end=end))
    command = [sys.executable, "-m", "engine", "watch", "--report-to", url, *options, "--", sys.executable, "train.py"]
    environment = {**os.environ, "MEMORYMARK_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(("options", "line"), [((), ""), (("--report-output",), "ValueError: no such column: age")])
def test_a_training_that_died_is_reported_with_its_line_only_on_request(
    portal: LoopbackPortal, tmp_path: Path, options: tuple[str, ...], line: str
) -> None:
    done = run(tmp_path, portal.url, *options)
    assert (done.returncode, done.stdout) == (1, "trained\n")
    assert done.stderr.splitlines()[-1] == f"reported: {portal.url}/runs/812/"
    [(key, announced)] = portal.announced.items()
    assert (announced["kind"], announced["spec"]["model"]) == ("watch", "train.py")
    [sent] = [json.loads(each) for each in portal.results.values()]
    assert (sent["exit_status"], sent["result"]["environment"]["run_key"]) == (1, key)
    assert sent["result"]["process"]["death"]["line"] == line
    assert ("no such column" in json.dumps(sent)) == bool(line)


@pytest.mark.parametrize("fault", ["die", (401, {"detail": "Not signed in."})])
@pytest.mark.parametrize(("end", "status"), [(RAISES, 1), (IS_KILLED, -signal.SIGTERM)])
def test_a_portal_that_is_away_or_refuses_changes_nothing_and_is_said_in_a_line(
    portal: LoopbackPortal, tmp_path: Path, fault: Any, end: str, status: int
) -> None:
    portal.fault = lambda _path, _number: fault
    done = run(tmp_path, portal.url, end=end)
    assert (done.returncode, done.stdout) == (status, "trained\n")
    *_, last = done.stderr.splitlines()
    assert last.startswith("kept in memorymark-runs: `python -m engine sync memorymark-runs")
    assert done.stderr.count("kept in memorymark-runs") == 1
    [kept] = (tmp_path / "memorymark-runs").glob("*.json")
    assert json.loads(kept.read_text())["exit_status"] == status


def test_a_command_without_a_training_is_not_reported(portal: LoopbackPortal, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine", "watch", "--report-to", portal.url, "--", "true"]
    environment = {**os.environ, "MEMORYMARK_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "not reported: no process was seen to train")
    assert portal.calls == []
