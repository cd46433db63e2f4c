"""The command `check`, its baselines over HTTP, and the two lines of docs/ci.md."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pytest
import yaml

from engine.cli.main import command
from tests.engine.honest_worker import HonestWorker, document_of

ROOT = Path(__file__).resolve().parents[3]
BASE = document_of(HonestWorker(100))
SMALLER = document_of(HonestWorker(60))
SECRET = "mm_secret"


class Portal(HTTPServer):
    """A stand-in of the API: answers by path, and notes what it was sent."""

    answers: dict[str, tuple[int, Any]]
    seen: list[tuple[str, str | None]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Portal

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        status, content = self.server.answers.get(self.path.partition("?")[0], (404, {}))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", content)
        self.end_headers()
        self.wfile.write(content if isinstance(content, bytes) else json.dumps(content).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Portal]:
    monkeypatch.setenv("MEMORYMARK_TOKEN", SECRET)
    server = Portal(("127.0.0.1", 0), Handler)
    server.answers, server.seen = {}, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run_of(document: dict[str, Any], key: str | None = None, **row: Any) -> dict[str, Any]:
    environment = {**document["environment"], **({"run_key": key} if key else {})}
    return {"id": 7, "state": "finished", **row, "result": {**document, "environment": environment}}


@pytest.fixture
def result(tmp_path: Path) -> str:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(run_of(SMALLER, "own")["result"]))
    return str(path)


def write(folder: Path, document: Any, name: str = "baseline.json") -> str:
    (folder / name).write_text(json.dumps(document))
    return str(folder / name)


def test_a_smaller_limit_ends_with_7_and_is_in_the_summary_of_the_job(
    result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert command(["check", result, "--baseline", write(tmp_path, BASE), "--junit", str(tmp_path / "check.xml")]) == 7
    assert "[FAIL] largest batch size: 60; baseline or demand: 100 (-40.0%)" in capsys.readouterr().out
    assert summary.read_text().startswith("before\n### MemoryMark: bert-tiny on Made-up device")
    assert "| largest batch size | 60 | 100 | **regressed** | -40.0% |" in summary.read_text()
    assert "<failure " in (tmp_path / "check.xml").read_text()


def test_what_is_within_the_share_ends_with_0(result: str, tmp_path: Path) -> None:
    better = [result, "--baseline", write(tmp_path, SMALLER), "--max-memory", "400MiB", "--min-batch", "60"]
    assert command(["check", *better]) == 0
    assert (
        command(["check", result, "--baseline", write(tmp_path, BASE), "--fail-below", "50%", "--fail-above", "50%"])
        == 0
    )


def test_a_demand_that_the_search_had_no_time_to_reach_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    stopped = str(ROOT / "benchmarks/data/results/time_budget.json")  # 128 trained, and nothing larger was tried
    assert command(["check", stopped, "--min-batch", "129"]) == 0
    assert "[OPEN] batch size demanded: 128; baseline or demand: at least 129" in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--baseline", "nowhere.json"], ["--baseline", "http://127.0.0.1:9/"]])
def test_what_cannot_be_checked_ends_with_2(options: list[str], result: str) -> None:
    assert command(["check", result, *options]) == 2


@pytest.mark.parametrize(
    "option", [("--fail-below", "200%"), ("--fail-above", "x"), ("--max-memory", "much"), ("--min-batch", "0")]
)
def test_a_bad_option_is_named(option: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["check", "result.json", *option]) == 2
    assert f"Invalid value for '{option[0]}': " in capsys.readouterr().err


def test_the_newest_run_of_the_same_workload_is_the_baseline_and_not_the_run_itself(
    result: str, portal: Portal, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {**BASE, "spec": {**BASE["spec"], "sequence_length": 64}}
    rows = [{"id": number} for number in (9, 8, 6, 5)]
    portal.answers = {
        "/api/v1/runs/": (200, {"results": rows}),
        "/api/v1/runs/9/": (200, {"id": 9, "result": {"spec": {}}}),  # of a version that stored other members
        "/api/v1/runs/8/": (200, run_of(SMALLER, "own")),
        "/api/v1/runs/6/": (200, run_of(other)),
        "/api/v1/runs/5/": (200, run_of(BASE, "earlier")),
    }
    assert command(["check", result, "--baseline", f"{portal.url}/"]) == 7
    assert f"{portal.url}/api/v1/runs/5/" in capsys.readouterr().out
    assert [path for path, _ in portal.seen[1:]] == [f"/api/v1/runs/{n}/" for n in (9, 8, 6, 5)]
    portal.answers["/api/v1/runs/"] = (200, {"results": rows[:2]})
    assert command(["check", result, "--baseline", portal.url]) == 2


def test_the_portal_lists_only_what_it_trusts_of_the_same_training(result: str, portal: Portal) -> None:
    portal.answers["/api/v1/runs/"] = (200, {"results": []})
    assert command(["check", result, "--baseline", portal.url]) == 2
    (listed,) = (parse_qs(urlsplit(path).query) for path, _ in portal.seen)
    assert {name: value for name, (value,) in listed.items()} == {
        **{"model": "bert-tiny", "gpu": "Made-up device", "kind": "measurement", "state": "finished"},
        **{"origin": "here-or-trusted", "precision": "fp32", "optimizer": "adamw"},
    }


def test_a_portal_that_does_not_know_the_filter_is_named_as_of_another_version(
    result: str, portal: Portal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answers["/api/v1/runs/"] = (400, {"detail": "origin: must be one of here, reported, trusted, untrusted"})
    assert command(["check", result, "--baseline", portal.url]) == 2
    error = capsys.readouterr().err
    assert f"{portal.url} is of another version, update it or give the address of a run" in error
    assert "origin: must be one of here" in error


REPORTED = {"origin": "reported by kim from dgx-01", "reported_from": "dgx-01", "is_trusted": False}
DOUBT = "was reported by kim from dgx-01, and its portal does not trust it"


@pytest.mark.parametrize("rest", ["", "result/"])
def test_a_baseline_that_its_portal_does_not_trust_is_warned_of_in_every_format(
    rest: str, result: str, portal: Portal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"/api/v1/runs/7/{rest}"
    portal.answers[address] = (200, {**SMALLER, **REPORTED} if rest else run_of(SMALLER, **REPORTED))
    files = ["--markdown", str(tmp_path / "table.md"), "--junit", str(tmp_path / "check.xml")]
    assert command(["check", result, "--baseline", f"{portal.url}{address}", *files]) == 0
    assert f"[WARN] the baseline {DOUBT}" in capsys.readouterr().out
    assert f"> **Warning:** the baseline {DOUBT}" in (tmp_path / "table.md").read_text()
    suite = ElementTree.parse(tmp_path / "check.xml").getroot()
    (skipped,) = [message for each in suite.iter("skipped") if DOUBT in (message := each.get("message", ""))]
    assert skipped.startswith("Warning: the baseline ")
    assert (suite.get("tests"), suite.get("skipped")) == (str(len(suite)), str(len(list(suite.iter("skipped")))))
    assert command(["check", result, "--baseline", f"{portal.url}{address}", "--markdown", "-"]) == 0
    assert f"> **Warning:** the baseline {DOUBT}" in capsys.readouterr().out


@pytest.mark.parametrize("rest", ["", "result/"])
def test_with_trusted_only_it_is_refused_and_nothing_is_written(
    rest: str, result: str, portal: Portal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address, report = f"/api/v1/runs/7/{rest}", tmp_path / "check.xml"
    portal.answers[address] = (200, {**SMALLER, **REPORTED} if rest else run_of(SMALLER, **REPORTED))
    options = [result, "--baseline", f"{portal.url}{address}", "--trusted-only", "--junit", str(report)]
    assert command(["check", *options]) == 2
    shown = capsys.readouterr()
    assert f"error: --baseline: {portal.url}{address} is refused by --trusted-only: the baseline {DOUBT}" in shown.err
    assert (shown.out, report.exists()) == ("", False)
    portal.answers[address] = (200, SMALLER)  # of a portal that does not say
    assert command(["check", *options]) == 2
    assert "does not say whether it is trusted" in capsys.readouterr().err
    trusted = {**REPORTED, "is_trusted": True}
    portal.answers[address] = (200, {**SMALLER, **trusted} if rest else run_of(SMALLER, **trusted))
    assert command(["check", *options]) == 0
    assert "WARN" not in capsys.readouterr().out


def test_the_members_of_the_run_decide_and_not_what_its_result_claims(
    result: str, portal: Portal, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = {**SMALLER, **REPORTED, "is_trusted": True}
    portal.answers["/api/v1/runs/7/"] = (200, run_of(forged, **{**REPORTED, "is_trusted": "yes"}))
    assert command(["check", result, "--baseline", f"{portal.url}/api/v1/runs/7/"]) == 0
    assert "[WARN]" in capsys.readouterr().out


def test_a_result_out_of_a_portal_is_warned_of_and_refused_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [write(tmp_path, run_of(SMALLER, **REPORTED), "exported.json"), "--baseline", write(tmp_path, SMALLER)]
    assert command(["check", *files]) == 0
    assert f"[WARN] the result {DOUBT}" in capsys.readouterr().out
    assert command(["check", *files, "--trusted-only"]) == 2
    assert "error: result: " in capsys.readouterr().err


def test_a_file_that_says_nothing_of_trust_is_taken_as_it_is(
    result: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["check", result, "--baseline", write(tmp_path, SMALLER), "--trusted-only"]) == 0
    assert "WARN" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {}), "refused with 401; is MEMORYMARK_TOKEN set"),
        ((302, "http://127.0.0.1:9/elsewhere"), "refused with 302: it redirects to http://127.0.0.1:9/elsewhere"),
        ((200, b"<html>"), "answered with 200, but not as a portal does; is it a run's API address"),
        ((200, [1]), "answered with 200, but not as a portal does"),
    ],
)
def test_a_portal_that_does_not_answer_a_run_is_an_error_without_the_token(
    answer: tuple[int, Any], said: str, result: str, portal: Portal, capsys: pytest.CaptureFixture[str]
) -> None:
    portal.answers["/api/v1/runs/7/"] = answer
    assert command(["check", result, "--baseline", f"{portal.url}/api/v1/runs/7/"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert SECRET not in error
    assert len(portal.seen) == 1  # no redirect was followed


def check_lines() -> list[str]:
    """The lines of the workflows in docs/ci.md that check."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    steps = [step for block in blocks for step in yaml.safe_load(block)["jobs"]["batch-size"]["steps"]]
    return [step["run"] for step in steps if "memorymark check" in step.get("run", "")]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_the_line_of_a_workflow_stops_a_regression(number: int, tmp_path: Path, portal: Portal) -> None:
    line = check_lines()[number].replace("${{ vars.MEMORYMARK_URL }}", portal.url)
    portal.answers = {
        "/api/v1/runs/": (200, {"results": [{"id": 7}]}),
        "/api/v1/runs/7/": (200, run_of(BASE, "earlier")),
    }
    command = tmp_path / "memorymark"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m engine "$@"\n')
    command.chmod(0o700)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(tmp_path / "s.md")}
    write(tmp_path, BASE)
    statuses = []
    for document in (BASE, SMALLER):
        write(tmp_path, run_of(document, "own")["result"], "result.json")
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, check=False)
        statuses.append(done.returncode)
    assert statuses == [0, 7], done.stderr
    assert "**regressed**" in (tmp_path / "s.md").read_text()
    assert "<failure " in (tmp_path / "check.xml").read_text()
