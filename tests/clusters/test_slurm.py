"""The section on Slurm in docs/clusters.md, followed word for word against real daemons and a real portal."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from analysis.accounts.tokens import token_create
from analysis.models import Run, State
from engine.report.address import ADDRESS_VARIABLE, TOKEN_VARIABLE
from tests.clusters.document import ROOT, blocks, section
from tests.clusters.scratch_slurm import is_installed, slurm
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal, serving
from tests.factories import make_user

JOB_SECONDS = 600


def test_the_section_has_two_files_and_three_commands_and_names_the_portal():
    kinds = [kind for kind, _ in blocks("Slurm")]
    assert kinds == ["text models.txt", "bash measure.sbatch", "sh portal", "sh", "sh", "sh"]
    assert "two files and the three commands" in " ".join(section("Slurm").split())
    portal = dict(blocks("Slurm"))["sh portal"]
    assert ADDRESS_VARIABLE in portal
    assert TOKEN_VARIABLE in portal


needs_slurm = pytest.mark.skipif(
    not is_installed(), reason="needs root, and apt-get install slurmctld slurmd slurm-client munge"
)


@pytest.mark.slow
@needs_slurm
@pytest.mark.django_db(transaction=True)
def test_an_array_job_measures_each_line_of_the_list_and_reports_it(live_server: Any, tmp_path: Path):
    work, daemons = tmp_path / "work", tmp_path / "daemons"
    work.mkdir()
    daemons.mkdir()
    named = {kind.partition(" ")[2]: text for kind, text in blocks("Slurm")}
    for name in ("models.txt", "measure.sbatch"):
        (work / name).write_text(named[name])
    submit, advise, sync = (text for kind, text in blocks("Slurm") if kind == "sh")
    _, secret = token_create(owner=make_user("carol"), name="cluster", may_write=True, expires_at=None)
    with slurm(daemons) as environment:
        environment |= reporting_to(str(live_server.url), secret, tmp_path)
        run = {"cwd": work, "env": environment, "capture_output": True, "text": True, "check": False}
        submitted = subprocess.run(["bash", "-c", submit], timeout=JOB_SECONDS, **run)
        logs = "\n".join(path.read_text() for path in work.glob("measure-*.out"))
        assert submitted.returncode == 0, submitted.stderr + logs
        reported = list(Run.objects.order_by("report__started_at"))
        advised, synced = (subprocess.run(["bash", "-c", text], timeout=60, **run) for text in (advise, sync))
    results = [json.loads((work / "results" / f"{task}.json").read_text()) for task in (1, 2)]
    assert [each["exit_status"] for each in results] == [0, 0], logs
    assert results[0]["result"]["boundary"]["certified"], logs
    assert (advised.returncode, bool(advised.stdout)) == (0, True), advised.stderr

    host = socket.gethostname()
    assert [(each.state, each.reported_from, each.is_trusted) for each in reported] == [
        (State.FINISHED, host, False)
    ] * 2, logs
    environments = [each.result["environment"] for each in reported]
    assert [each["slurm_array_task_id"] for each in environments] == ["1", "2"]
    assert [each.spec["optimizer"] for each in reported] == ["adamw", "sgd"]
    assert [line.partition(":")[0] for line in synced.stdout.splitlines()] == ["known", "known"], synced.stderr
    assert (synced.returncode, secret in logs) == (0, False)


@pytest.mark.slow
@needs_slurm
def test_a_job_that_is_cancelled_ends_its_run_in_the_portal(tmp_path: Path):
    (tmp_path / "job").write_text("#!/bin/bash\npython -m engine bert-tiny cpu --memory-limit 512MiB\n")
    (daemons := tmp_path / "daemons").mkdir()
    with serving(LoopbackPortal()) as portal, slurm(daemons) as environment:
        environment |= reporting_to(portal.url, TOKEN, tmp_path)
        submitted = subprocess.run(
            ["sbatch", "--parsable", "job"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        wait_for_event(portal, "probe")
        subprocess.run(["scancel", submitted.stdout.strip()], env=environment, check=True)
        wait_for_event(portal, "error")
    [events] = portal.events.values()
    assert events[-1]["error"]["code"] == "stopped"
    assert "SIGTERM" in events[-1]["error"]["message"]


def reporting_to(url: str, token: str, folder: Path) -> dict[str, str]:
    """The environment that has MemoryMark, and names a portal."""
    (programs := folder / "programs").mkdir()
    (command := programs / "memorymark").write_text('#!/bin/sh\nexec python -m engine "$@"\n')
    command.chmod(0o755)
    return {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MEMORYMARK_LOCK_DIR": str(folder / "locks"),
        ADDRESS_VARIABLE: url,
        TOKEN_VARIABLE: token,
    }


def wait_for_event(portal: LoopbackPortal, name: str) -> None:
    until = time.monotonic() + JOB_SECONDS
    while not any(event["event"] == name for events in portal.events.values() for event in events):
        assert time.monotonic() < until, f"no {name} event came"
        time.sleep(0.2)
