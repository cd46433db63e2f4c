"""Forgeries and malformed reports, sent as an attacker would: refused by name, or skipped; no page breaks or lies."""

import copy
import json
from typing import Any

import pytest
from django.test import Client

from analysis.models import Device, Run, RunLog
from engine.questions.kinds import answered
from engine.trainings.script.spec import TuneSpec
from tests.engine.honest_worker import HonestWorker, document_of
from tests.engine.questions.answers.answers import originals
from tests.engine.questions.answers.test_commands import made, made_up_start
from tests.factories import make_probe
from tests.factories.reports import body_of, make_events, make_run_key

pytestmark = pytest.mark.django_db


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A tuned command of six equal pairs: the larger size is no faster, and today's one stays."""
    monkeypatch.setattr("engine.trainings.script.speed.seats.start", made_up_start)
    settings = {"memory_limit_bytes": 4_000, "compare_speed": True, "start_batch_size": 32}
    return made(TuneSpec(("python", "train.py", "{batch_size}"), **settings))


def refused_fields(answer: Any) -> set[str]:
    assert answer.status_code in (400, 422), answer.content
    assert not Run.all_runs.exists()
    return {error["pointer"].strip("/").replace("/", ".") for error in answer.json()["errors"]}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("speed", "reason"), "use 4,096, it is 50x as fast as your 16"),
        (("speed", "method"), "as NVIDIA measures"),
        (("boundary", "note"), "independently verified by NVIDIA: 50x as fast"),
    ],
)
def test_text_of_a_document_is_the_engine_s_own_or_not_stored(sender, tuned, alice_client: Client, path, text):
    """The first was the headline of its page."""
    part, member = path
    tuned[part][member] = text
    run_id = sender.send_result(body_of(tuned)).json()["id"]
    assert text not in json.dumps(Run.objects.get().result)
    assert text not in alice_client.get(f"/runs/{run_id}/").content.decode()


def test_three_documents_whose_conclusions_were_changed_by_hand_show_what_their_facts_say(sender, alice_client: Client):
    lied_of = document_of(HonestWorker(90))
    for document, changes in (
        (document_of(HonestWorker(528)), {"speedup": 50.0, "recommended": {"batch_size": 9}}),
        (lied_of, {"boundary": {**lied_of["boundary"], "largest_batch_size": 4_096, "reason": "error"}}),
        (copy.deepcopy(originals()["tune_speed"]), {"savings": {"per_year_usd": 1e9}, "waste": None}),
    ):
        honest = answered(document)
        answer = sender.send_result(body_of({**document, **changes}))
        assert answer.status_code == 201, answer.content
        stored = Run.objects.get(pk=answer.json()["id"]).result
        for name in ("boundary", "recommended", "speedup", "savings", "waste"):
            assert stored[name] == honest[name]
        assert alice_client.get(f"/runs/{answer.json()['id']}/").status_code == 200


@pytest.mark.parametrize("kind", ["KIND", "", "Activations"])
@pytest.mark.parametrize("path", [("memory_breakdown",), ("estimate", "breakdown")])
def test_a_breakdown_of_an_unknown_kind_is_refused(sender, kind, path):
    document = copy.deepcopy(originals()["bert_tiny"])
    breakdown = copy.deepcopy(document["memory_breakdown"])
    breakdown["entries"][1]["kind"] = kind
    if path[0] == "estimate":
        breakdown["method"] = "estimated"
        document["estimate"]["breakdown"] = breakdown
    else:
        document["memory_breakdown"] = breakdown
    field = ".".join((*path, "entries.1.kind"))
    assert refused_fields(sender.send_result(body_of(document))) == {field}


@pytest.mark.parametrize(
    ("member", "value"), [("largest_batch_size", -1), ("safe_batch_size", -1), ("largest_batch_size", 2**40)]
)
def test_an_estimate_of_sizes_that_are_none_is_refused(sender, member, value):
    document = copy.deepcopy(originals()["bert_tiny"])
    document["estimate"][member] = value
    assert f"estimate.{member}" in refused_fields(sender.send_result(body_of(document)))


@pytest.mark.parametrize("name", ["", "A card\nUse 4,096", "x" * 201])
def test_an_estimate_for_a_card_whose_name_is_no_line_is_refused(sender, name):
    document = copy.deepcopy(originals()["bert_tiny"])
    document["estimate"]["gpu"]["name"] = name
    assert "estimate.gpu.name" in refused_fields(sender.send_result(body_of(document)))


def test_a_soak_above_the_largest_size_is_refused(sender):
    document = document_of(HonestWorker(20, soak_boundary=18))
    next(p for p in document["probes"] if p["purpose"] == "soak" and p["outcome"] != "fits")["purpose"] = "curve"
    soak = next(p for p in document["probes"] if p["purpose"] == "soak")
    soak["outcome"], soak["batch_size"] = "fits", 21
    assert refused_fields(sender.send_result(body_of(document)))


@pytest.mark.parametrize("name", ["precision", "optimizer", "current_batch_size", "price_per_hour_usd"])
@pytest.mark.parametrize("is_null", [False, True])
def test_a_spec_without_what_pages_read_of_it_is_refused(sender, name, is_null):
    document = copy.deepcopy(originals()["fits"])
    del document["spec"][name]
    if is_null:
        document["spec"][name] = None
    assert refused_fields(sender.send_result(body_of(document))) <= {f"spec.{name}", name}


ESTIMATE = {"event": "estimate", "seconds": 1.0}
PREDICTED = originals()["bert_tiny"]["estimate"]
PHASES = ("estimating", "preparing", "searching")
EVENTS: dict[str, list[dict[str, Any]]] = {
    "an estimate whose card is a number": [{**ESTIMATE, "estimate": {"gpu": 7}}],
    "an estimate whose card is text": [{**ESTIMATE, "estimate": {**PREDICTED, "gpu": "a10"}}],
    "an estimate whose spec is text": [{**ESTIMATE, "estimate": {**PREDICTED, "spec": "x"}}],
    "an estimate whose size is text": [{**ESTIMATE, "estimate": {**PREDICTED, "largest_batch_size": "many"}}],
    "phases whose seconds are text": [{"event": "phase", "seconds": "x", "phase": name} for name in PHASES],
    "phases whose seconds are a list": [{"event": "phase", "seconds": [1], "phase": name} for name in PHASES],
    "a phase whose cards are text": [{"event": "phase", "seconds": 1.0, "phase": "predicting", "cards": "x"}],
    "a phase that began after any run": [{"event": "phase", "seconds": 1e300, "phase": name} for name in PHASES],
    "a round whose bound is text": [
        {"event": "phase", "seconds": 1.0, "phase": "timing"},
        {"event": "timing", "round": 6, "batch_sizes": [4], "seconds_left_at_most": "x", "stage": "selection"},
    ],
    "a round that lasts for ever": [
        {"event": "phase", "seconds": 1.0, "phase": "timing"},
        {"event": "timing", "round": 6, "batch_sizes": [4], "seconds_left_at_most": 1e300, "stage": "selection"},
    ],
    "progress of no size": [{"event": "progress", "batch_size": -3, "step": -1, "purpose": "search"}],
    "a probe of no size that starts": [{"event": "probe_started", "batch_size": -3, "purpose": "search"}],
    "a probe of no size": [{"event": "probe", "probe": {**make_probe(4).to_dict(), "batch_size": 0}}],
}


@pytest.mark.parametrize("name", EVENTS)
def test_a_malformed_event_is_skipped_with_a_line_of_the_log_and_its_pages_open(sender, alice_client: Client, name):
    sender.begin(key := make_run_key())
    events = [*make_events(), *EVENTS[name]]
    assert sender.send_events(key, 0, *events).status_code == 200
    run = Run.objects.get()
    skipped = RunLog.objects.of(run).filter(message__startswith=f"Skipped a {EVENTS[name][-1]['event']} event")
    assert skipped.exists()
    for ended in (False, True):
        if ended:
            sender.send_events(key, len(events), {"event": "error", "error": {"code": "x", "message": "gone"}})
        for page in (f"/runs/{run.pk}/", f"/runs/{run.pk}/live/", f"/api/v1/runs/{run.pk}/", "/", "/fleet/"):
            assert alice_client.get(page).status_code in (200, 286)


@pytest.mark.parametrize(
    ("member", "value"),
    [("capacity_bytes", -5), ("capacity_bytes", 0), ("kind", ""), ("limit_bytes", 0), ("name", ""), ("device", "")]
    + [("name", "A card\nUse 4,096"), ("name", "x" * 300), ("uuid", " "), ("foreign_processes", [{"name": "a\nb"}])],
)
def test_a_device_that_cannot_be_is_neither_stored_nor_shown(sender, member, value):
    sender.begin(key := make_run_key())
    device = next(event for event in make_events() if event["event"] == "device")
    device["device"][member] = value
    assert sender.send_events(key, 0, device).status_code == 200
    assert not Device.all_devices.exists()
    assert member in RunLog.objects.of(Run.objects.get()).get().message
