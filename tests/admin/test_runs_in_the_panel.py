"""What managers do to runs and devices from the panel, and how they find them there."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from django_q.models import OrmQ, Task

from analysis.admin.queue import first_text
from analysis.models import AuditEntry, Device, Run
from analysis.runs import services
from tests.factories import make_card, make_claimed_run, make_device, make_measured_run, make_run
from tests.factories.pages import words

pytestmark = pytest.mark.django_db

RUNS = "/admin/analysis/run/"


def do(client, action, *runs, at=RUNS):
    return client.post(at, {"action": action, "_selected_action": [run.pk for run in runs]})


def found(client, query):
    return [run.pk for run in client.get(f"{RUNS}?{query}").context["cl"].result_list]


def test_a_run_is_pinned_unpinned_deleted_and_restored(root_client):
    run = make_measured_run()
    for action, column, expected in (
        ("pin", "is_baseline", True),
        ("unpin", "is_baseline", False),
        ("soft_delete", "deleted_at", "set"),
        ("restore", "deleted_at", None),
    ):
        at = f"{RUNS}?deleted=yes" if action == "restore" else RUNS
        do(root_client, action, run, at=at)
        value = getattr(Run.all_runs.get(pk=run.pk), column)
        assert value is not None if expected == "set" else value == expected, action


def test_deleted_runs_stand_in_a_list_of_their_own(root_client, root):
    kept, gone = make_measured_run(), make_measured_run(make_device("other"))
    services.runs_delete(run_ids=[gone.pk], by=root)
    assert (found(root_client, ""), found(root_client, "deleted=yes")) == ([kept.pk], [gone.pk])
    assert root_client.get(f"{RUNS}{gone.pk}/change/").status_code == 200


def test_a_run_is_asked_for_again_by_the_manager(root_client, root):
    run = make_measured_run()
    do(root_client, "retry", run)
    assert Run.objects.get(requested_by=root).state == "queued"


def test_all_that_there_are_is_never_meant(root_client):
    device = make_device()
    ticked, other = make_run(device), make_run(device)
    data = {"action": "cancel", "_selected_action": [ticked.pk], "select_across": "1"}
    root_client.post(RUNS, data)
    states = {run.pk: run.state for run in Run.objects.all()}
    assert states == {ticked.pk: "cancelled", other.pk: "queued"}


def test_the_ticked_runs_are_exported(root_client):
    run, _other = make_measured_run(), make_measured_run(make_device("other"))
    rows = json.loads(b"".join(do(root_client, "export_json", run).streaming_content))
    assert [row["id"] for row in rows] == [run.pk]
    lines = b"".join(do(root_client, "export_csv", run).streaming_content).decode().splitlines()
    assert lines[0].startswith("id,")
    assert len(lines) == 2


def test_runs_are_found_by_number_person_word_and_model(root_client, alice):
    run = make_run(requested_by=alice)
    make_run(make_device("other"))
    services.run_annotate(run_id=run.pk, by=alice, name="nightly sweep", note="", tags=[])
    for text in (str(run.pk), "alice", "night"):
        assert found(root_client, f"q={text}") == [run.pk], text
    assert len(found(root_client, "q=bert")) == 2
    assert found(root_client, "q=nosuchword") == []


@pytest.mark.parametrize("query", ["state=queued", "kind=measurement", "model=bert-tiny", "mark=baseline", "device=no"])
def test_runs_are_filtered(root_client, query):
    run = make_run()
    expected = [] if query in ("mark=baseline", "device=no") else [run.pk]
    assert found(root_client, query) == expected


def test_a_runs_page_shows_its_attempts_and_probes_and_where_its_log_is(root_client):
    run = make_claimed_run()
    page = root_client.get(f"{RUNS}{run.pk}/change/").content.decode()
    assert "tester" in page
    assert f"/admin/analysis/runlog/?run__id__exact={run.pk}" in page


def test_devices_are_disabled_and_enabled_and_their_workers_woken(root_client):
    device = make_device()
    for action, enabled in (("disable", False), ("enable", True)):
        do(root_client, action, device, at="/admin/analysis/device/")
        assert Device.objects.get().enabled is enabled
    assert OrmQ.objects.get().key == device.queue_name
    assert AuditEntry.objects.filter(action="device.change", target_id=str(device.pk)).count() == 2


def test_to_calibrate_says_the_command_for_the_cards_own_host(root_client):
    card = make_card(uuid="GPU-7")
    do(root_client, "calibrate", card, at="/admin/analysis/device/")
    assert "manage.py calibrate --device GPU-7" in root_client.get("/admin/").content.decode()


def test_the_queue_page_tells_what_failed_without_unpickling_it(root_client, monkeypatch):
    device = make_device()
    make_run(device)
    times = {"started": "2026-11-20T10:00Z", "stopped": "2026-11-20T10:01Z"}
    Task.objects.create(
        id="1", name="n", func="analysis.workers.tasks.wake", result="boom : Traceback", success=False, **times
    )
    monkeypatch.setattr("picklefield.fields.dbsafe_decode", lambda *args, **kwargs: 1 / 0)
    page = root_client.get("/admin/queue/").content.decode()
    assert "boom : Traceback" in page
    assert "Test CPU (lab cpu)" in page


@pytest.mark.parametrize("stored", [None, "", "no base64!", "AAAA", "gASVAAAAAAAAAA=="])
def test_what_is_no_pickle_says_nothing(stored):
    assert first_text(stored) == ""


def test_the_first_page_adds_up_the_hours_of_each_gpu(root_client):
    card = make_card()
    run = make_measured_run(card)
    ended_at = timezone.now()
    run.attempts.update(started_at=ended_at - timedelta(hours=3), ended_at=ended_at)
    shown = root_client.get("/admin/").context["dashboard"]
    assert shown["all_gpu_hours"] == pytest.approx(3.0, abs=0.001)
    assert [bar["name"] for bar in shown["gpu_hours"]] == [str(card)]


def test_the_first_page_says_who_is_silent_and_what_waits(root_client):
    device = make_device()
    run = make_run(device)
    page = root_client.get("/admin/").content.decode()
    assert f"run {run.pk}</a>, BERT tiny" in page
    assert "No sign of life:" in page


def test_the_queue_page_says_which_runs_wait_for_what_and_who_holds_the_device(root_client, alice):
    device = make_card(held_process="process 546 on lab", held_work="memorymark tune train.py")
    run = make_run(device, requested_by=alice)
    page = words(root_client.get("/admin/queue/").content.decode())
    held = "held by memorymark tune train.py (process 546 on lab)"
    assert f"alive {held}" in page
    assert f"run {run.pk} BERT tiny alice" in page
    assert page.count(held) == 2
    assert "Message" not in page
