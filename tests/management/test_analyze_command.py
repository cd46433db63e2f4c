"""`manage.py analyze`: one stored run in the foreground."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django_q.models import OrmQ

from analysis.models import Run, State
from analysis.workers import device_discovery
from analysis.workers.device_lock import device_lock
from engine.facts.result import DeviceFacts
from engine.text.units import GIB
from tests.factories import make_device, make_run
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _host_with_a_cpu(monkeypatch: pytest.MonkeyPatch, settings) -> None:
    monkeypatch.setattr(device_discovery, "devices_find", lambda: [DeviceFacts("cpu", "cpu", "A CPU", 8 * GIB)])
    settings.HOST_NAME = "lab"


def analyze(settings: Any, mode: str, *options: str) -> tuple[int, str]:
    settings.ENGINE_COMMAND = (*FAKE_ENGINE, mode)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("analyze", "bert-tiny", "--device", "cpu", *options, stdout=out)
    return ended.value.code, out.getvalue()


def test_a_run_is_stored_and_its_lines_are_shown(settings):
    status, out = analyze(settings, "ok", "--memory-limit", "512MiB", "--precision", "bf16")
    run = Run.objects.get()
    assert (status, run.state, run.precision) == (0, State.FINISHED, "bf16")
    assert run.spec["memory_limit_bytes"] == 512 * 1024**2
    assert out.splitlines()[-2:] == [
        "batch 9: out of memory (over the limit)",
        f"run {run.pk}: largest batch size 8 (certified), recommended 8",
    ]


@pytest.mark.parametrize(
    ("mode", "exit_status", "expected"),
    [
        ("out_of_memory_at_1", 3, "does not fit"),
        ("error", 1, "the loss is not a number"),
        ("crash", 1, "Segmentation fault"),
    ],
)
def test_it_exits_as_the_engine_does_and_says_why(settings, mode, exit_status, expected):
    status, out = analyze(settings, mode)
    assert status == exit_status
    assert expected in out.splitlines()[-1]


def test_it_runs_its_own_run_and_wakes_the_worker_for_the_others(settings):
    device = make_device()
    waiting = make_run(device)
    OrmQ.objects.all().delete()
    analyze(settings, "ok")
    assert Run.objects.get(pk=waiting.pk).state == State.QUEUED
    assert OrmQ.objects.filter(key=device.queue_name).exists()


def test_a_busy_device_is_refused_and_nothing_is_stored():
    with device_lock(make_device()), pytest.raises(CommandError, match="is busy"):
        call_command("analyze", "bert-tiny", "--device", "cpu")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("options", "exit_status", "expected"),
    [
        (["bert-huge"], 2, "model: 'bert-huge' is not offered"),
        (["bert-tiny", "--memory-limit", "lots"], 2, "memory_limit_bytes: 'lots' is not a size"),
        (["bert-tiny", "--current-batch-size", "0"], 2, "current_batch_size: 0 is out of range"),
        (["bert-tiny", "--device", "cuda:7"], 4, "cuda:7 is not a device of this host; it has cpu"),
    ],
)
def test_what_is_not_allowed_is_refused_with_the_field(options, exit_status, expected):
    with pytest.raises(CommandError, match=expected) as refused:
        call_command("analyze", *options)
    assert refused.value.returncode == exit_status
    assert not Run.objects.exists()
