"""`check` finds its baseline in a real portal: one run, or the newest of the same workload on the same card."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.accounts.tokens import token_create
from analysis.models import Run
from engine.cli.main import command
from engine.gate.baseline import MOST_LOOKED_AT
from tests.factories import make_user
from tests.factories.results import finished, result


@pytest.mark.django_db(transaction=True)
def test_the_newest_run_of_the_same_workload_is_the_baseline(
    live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, secret = token_create(owner=make_user("carol"), name="ci", may_write=False, expires_at=None)
    finished(result(20))
    newest = finished(result(16))
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result(10).to_dict()))
    portal = str(live_server.url)
    assert command(["check", str(path), "--baseline", portal]) == 2
    assert "is MEMORYMARK_TOKEN set" in capsys.readouterr().err
    monkeypatch.setenv("MEMORYMARK_TOKEN", secret)
    for _ in range(MOST_LOOKED_AT):  # a pipeline that reports each of its runs, without trust
        untrusted = finished(result(12))
        Run.objects.filter(pk=untrusted.pk).update(reported_from="ci-runner", is_trusted=False)
    for address in (portal, f"{portal}/api/v1/runs/{newest.pk}/", f"{portal}/api/v1/runs/{newest.pk}/result/"):
        assert command(["check", str(path), "--baseline", address]) == 7
        assert "[FAIL] largest batch size: 10; baseline or demand: 16 (-37.5%)" in capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("part", ["", "result/"])
def test_one_run_that_nobody_trusts_is_warned_of_and_refused_if_wanted(
    part: str, live_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, secret = token_create(owner=make_user("carol"), name="ci", may_write=False, expires_at=None)
    monkeypatch.setenv("MEMORYMARK_TOKEN", secret)
    run = finished(result(16))
    Run.objects.filter(pk=run.pk).update(reported_from="dgx-01", is_trusted=False)
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result(16).to_dict()))
    options = [str(path), "--baseline", f"{live_server.url}/api/v1/runs/{run.pk}/{part}"]
    assert command(["check", *options]) == 0
    assert "[WARN] the baseline was reported from dgx-01, and its portal does not trust it" in capsys.readouterr().out
    assert command(["check", *options, "--trusted-only"]) == 2
    Run.objects.filter(pk=run.pk).update(is_trusted=True)
    assert command(["check", *options, "--trusted-only"]) == 0
