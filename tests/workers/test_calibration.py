"""`manage.py calibrate`: a card's own constants, measured while nothing else uses it, for later estimates."""

import io
import sys

import pytest
from django.core.management import CommandError, call_command

from analysis.management.commands import calibrate
from analysis.models import Device, Run
from analysis.runs.gpu_catalog import calibrations
from analysis.workers.device_discovery import calibration_measure
from analysis.workers.device_lock import device_lock
from analysis.workers.supervisor import start_engine, supervise
from engine.errors import DeviceUnavailable, EngineError
from engine.estimate.gpus import gpus
from engine.text.units import GIB
from tests.factories import make_card, make_claimed_estimate, make_claimed_run, make_device
from tests.fake_engine import FAKE_ENGINE

pytestmark = pytest.mark.django_db

A10 = gpus()["a10"]


@pytest.fixture(autouse=True)
def _this_host(settings, monkeypatch):
    settings.HOST_NAME = "lab"
    settings.ENGINE_COMMAND = (*FAKE_ENGINE, "ok")
    monkeypatch.setattr(calibrate, "_LOCK_SECONDS", 0.0)


def make_a10(number: int = 0, **columns):
    return make_card(number, name=A10.torch_names[0], capacity_bytes=A10.total_bytes, uuid=f"GPU-{number}", **columns)


def watched_estimate(gpu: str) -> Run:
    run = make_claimed_estimate(gpu)
    supervise(run)
    return Run.objects.get(pk=run.pk)


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("calibrate", *arguments, stdout=out)
    return out.getvalue()


def test_a_host_without_a_gpu_has_nothing_to_calibrate():
    assert "nothing to calibrate" in said()


def test_a_card_is_measured_alone_and_its_constants_are_stored():
    card = make_a10()
    assert "context 512.0 MiB" in said("--device", "GPU-0")
    card.refresh_from_db()
    assert (card.calibration["context_bytes"], card.calibration["driver"]) == (GIB // 2, "GPU-0")
    assert card.calibrated_at is not None


def test_the_newest_calibration_of_a_class_is_the_one_that_counts(settings):
    make_a10(0), make_a10(1)
    said("--device", "GPU-0"), said("--device", "GPU-1")
    assert [found["driver"] for found in calibrations("a10")] == ["GPU-1"]
    assert calibrations("all") == calibrations("a10")
    assert calibrations("t4") == []


def test_estimates_for_such_cards_use_it_from_then_on_and_say_so(alice_client):
    make_a10()
    said("--device", "GPU-0")
    run = watched_estimate("all")
    (calibrated,) = (found for found in run.result["estimates"] if found["gpu"]["calibrated"])
    assert (calibrated["gpu"]["id"], calibrated["gpu"]["context_bytes"]) == ("a10", GIB // 2)
    text = alice_client.get(run.get_absolute_url()).content.decode()
    assert "1 GPU calibrated here." in text
    assert "too much for a Voodoo 2" in text
    assert "calibrated GPU" in alice_client.get(watched_estimate("a10").get_absolute_url()).content.decode()
    assert "not calibrated" in alice_client.get(watched_estimate("t4").get_absolute_url()).content.decode()


def test_a_card_that_a_run_uses_is_left_alone():
    card = make_a10()
    with device_lock(card), pytest.raises(CommandError, match="calibrate it when its run is over"):
        said("--device", "GPU-0")
    card.refresh_from_db()
    assert card.calibration is None


def test_a_cpu_is_refused_by_name():
    make_device()
    with pytest.raises(CommandError, match="not an NVIDIA or AMD GPU"):
        said("--device", "cpu")


def test_a_device_that_is_not_here_is_said_with_what_is():
    with pytest.raises(CommandError, match="not a device of this host"):
        said("--device", "GPU-9")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("import sys; sys.exit('error: no driver')", "no driver"),
        ("print('{}')", "schema"),
        ("print('[]')", "cannot be read"),
        ("print('{\"schema\": 1}')", "must have exactly"),
        ("print('what')", "cannot be read"),
    ],
)
def test_an_answer_that_is_none_is_an_error_and_stores_nothing(script, says):
    with pytest.raises(EngineError, match=says):
        calibration_measure(make_a10(), command=[sys.executable, "-c", script])


def test_an_engine_that_cannot_be_started_is_said():
    with pytest.raises(DeviceUnavailable, match="could not be calibrated"):
        calibration_measure(make_a10(), command=["/nowhere/engine"])


def test_a_measurement_on_a_calibrated_card_is_estimated_with_its_constants():
    said("--device", make_a10().uuid)
    run = make_claimed_run(Device.objects.get())
    script = "import json, sys; print(json.dumps({'event': 'phase', 'phase': open(sys.argv[-1]).read()[:40]}))"
    process = start_engine(run, [sys.executable, "-c", script], keep_open=[])
    told = next(iter(process.events(10)))
    process.end()
    assert told["phase"].startswith('{"device_name": "NVIDIA A10"')
