"""The panel shows everything as it is, lets nobody edit what was measured, and refuses what no row can have."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from analysis.models import GpuPrice, Host, Measurement, Run, RunLog
from analysis.permissions import MANAGER
from analysis.runs import services
from analysis.runs.gpu_catalog import gpu_choices, gpu_name, gpu_of, prices
from analysis.runs.services import LogLine
from engine.estimate.gpus import gpus
from tests.factories import make_card, make_claimed_run, make_device, make_host, make_probe, make_run, make_user
from tests.pages.fleet.test_fleet_page import words

pytestmark = pytest.mark.django_db

MEASURED = ("run", "measurement", "runlog")


@pytest.fixture
def rows() -> dict[str, int]:
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(), sequence=1)
    services.log_add(run_id=run.pk, token=run.token, lines=[LogLine("info", "hello")], first_sequence=1)
    return {"run": run.pk, "measurement": Measurement.objects.get().pk, "runlog": RunLog.objects.get().pk}


@pytest.mark.parametrize("model", MEASURED)
def test_what_was_measured_can_be_neither_added_nor_changed_nor_deleted(root_client, rows, model):
    base = f"/admin/analysis/{model}"
    number = rows[model]
    answers = [root_client.post(f"{base}/{path}") for path in ("add/", f"{number}/change/", f"{number}/delete/")]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert Run.objects.count() == Measurement.objects.count() == RunLog.objects.count() == 1


def test_price_and_use_of_a_device_are_for_people_to_decide(root_client):
    device = make_device()
    change = {"price_per_hour_usd": "2.5", "capacity_bytes": "1"}
    assert root_client.post(f"/admin/analysis/device/{device.pk}/change/", change).status_code == 302
    device.refresh_from_db()
    assert (device.price_per_hour_usd, device.enabled) == (2.5, False)
    assert device.capacity_bytes > 1


def test_a_host_is_drained_and_taken_back_by_an_action(root_client):
    device = make_device()
    chosen = {"_selected_action": [device.host_id]}
    for action, drained in (("drain", True), ("undrain", False)):
        root_client.post("/admin/analysis/host/", {"action": action, **chosen})
        assert Host.objects.get().drained is drained
    assert OrmQ.objects.get().key == device.queue_name


def test_the_upkeep_of_a_host_is_for_people_to_decide(root_client):
    host = make_host()
    change = {"drained": "on", "maintenance_note": "new fans", "name": "other"}
    assert root_client.post(f"/admin/analysis/host/{host.pk}/change/", change).status_code == 302
    host.refresh_from_db()
    assert (host.name, host.drained, host.maintenance_note) == ("lab", True, "new fans")


HUGE = "9" * 30
LOOKUPS = [
    *(("runlog", name) for name in ("run", "run_id", "run__exact", "id__in", "id__lt")),
    *(("attempt", "run"), ("attempt", "device"), ("measurement", "run"), ("matrixcell", "run")),
    *(("apitoken", "owner"), ("savedview", "owner"), ("trendacknowledgement", "run")),
    *((model, "id__in") for model in ("run", "device", "host", "auditentry", "quota", "gpuprice")),
]


@pytest.mark.parametrize(("model", "lookup"), LOOKUPS)
@pytest.mark.parametrize("number", [HUGE, f"-{HUGE}", str(2**63)])
def test_a_lookup_by_it_finds_nothing_or_is_refused(root_client, model, lookup, number):
    answer = root_client.get(f"/admin/analysis/{model}/", {lookup: number})
    assert (answer.status_code, answer.headers.get("Location", "?e=1")[-4:]) in ((302, "?e=1"), (200, "?e=1"))


@pytest.mark.parametrize("action", ["cancel", "retry", "export_csv", "soft_delete"])
def test_an_action_on_it_does_nothing(root_client, action):
    run = make_run()
    answer = root_client.post("/admin/analysis/run/", {"action": action, "_selected_action": [HUGE]})
    assert answer.status_code in (200, 302)
    assert list(Run.objects.values_list("pk", "state")) == [(run.pk, "queued")]


@pytest.mark.parametrize(("path", "action"), [("analysis/apitoken", "revoke"), ("auth/user", "close")])
def test_people_and_tokens_are_left_alone(root_client, path, action):
    answer = root_client.post(f"/admin/{path}/", {"action": action, "_selected_action": [HUGE, "x", "0"]})
    assert answer.status_code in (200, 302)


def text(client: Client, address: str) -> str:
    return words(client.get(f"/admin/{address}").content.decode())


def message(seconds_ago: float) -> None:
    """A message to the worker without a device that waits for so long."""
    sent_at = timezone.now() - timedelta(seconds=seconds_ago)
    OrmQ.objects.create(key=settings.Q_CLUSTER["name"], payload="", lock=sent_at)


def test_the_dashboard_counts_the_devices_that_are_online(root_client: Client) -> None:
    make_card()
    assert "1 of 1 device is online." in text(root_client, "")
    make_card(1, last_seen_at=None)
    shown = text(root_client, "")
    assert "1 of 2 devices is online. No sign of life: NVIDIA A100-SXM4-80GB (lab cuda:1)" in shown


def test_a_worker_without_a_device_is_no_fault_while_no_message_waits(root_client: Client) -> None:
    assert "work without a device no delay" in text(root_client, "queue/")
    message(seconds_ago=5)
    assert "work without a device no delay" in text(root_client, "queue/")
    message(seconds_ago=300)
    assert "work without a device silent : a message waits" in text(root_client, "queue/")


def test_a_superuser_is_not_said_to_see_nothing(root: User, root_client: Client) -> None:
    make_user("boss", MANAGER), make_user("newcomer", None)
    shown = text(root_client, "auth/user/")
    assert shown.count("superuser: may do everything") == 1
    assert shown.count("none: sees nothing") == 1
    assert "GPU manager" in shown


def test_every_part_of_the_panel_stands_under_a_subject(root_client: Client) -> None:
    tasks, _, shown = text(root_client, "").partition("Database tables")
    assert shown.index(" Notifications ") < shown.index(" Subscriptions ")
    assert [tasks.index(each) for each in ("People and limits", "Devices and maintenance", "Prices", "Trust", "Health")]
    assert " Other " not in shown


def test_the_filters_stand_above_the_table_and_are_open_while_one_is_set(root_client: Client) -> None:
    page = root_client.get("/admin/analysis/run/").content.decode()
    assert page.index('id="changelist-filter"') < page.index('id="changelist-form"')
    assert '<details class="filters">' in page
    assert '<details class="filters" open>' in root_client.get("/admin/analysis/run/?state=failed").content.decode()


ADD = "/admin/analysis/gpuprice/add/"


def price(**changes):
    return {"gpu": "a10", "price_per_hour_usd": "0.42", "source": "our offer", "valid_from": "2026-11-01", **changes}


def test_the_catalogues_first_values_hold_where_the_lab_has_none():
    found = prices()
    assert (found["a10"].per_hour_usd, found["a10"].is_of_lab) == (0.60, False)
    assert found["a100-40gb"].per_hour_usd == 1.29
    assert "rtx-3090" not in found or found["rtx-3090"].source


def test_the_labs_price_stands_in_and_names_who_set_it(root_client, root):
    assert root_client.post(ADD, price()).status_code == 302
    assert GpuPrice.objects.get().updated_by == root
    assert (prices()["a10"].per_hour_usd, prices()["a10"].is_of_lab) == (0.42, True)


@pytest.mark.parametrize("change", [{"gpu": "a11"}, {"price_per_hour_usd": "-1"}, {"source": ""}, {"valid_from": ""}])
def test_a_price_that_makes_no_sense_is_refused(root_client, change):
    assert root_client.post(ADD, price(**change)).status_code == 200
    assert not GpuPrice.objects.exists()


def test_the_list_of_prices_names_the_cards(root_client):
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=1, source="x", valid_from="2026-01-01")
    assert gpus()["a10"].name in root_client.get("/admin/analysis/gpuprice/").content.decode()


def test_every_card_is_offered_once_under_its_maker():
    (first, _), *groups = gpu_choices()
    offered = [gpu_id for _, cards in groups for gpu_id, _ in cards]
    assert first == "all"
    assert sorted(offered) == sorted(gpus())


def test_a_card_that_is_no_longer_in_the_catalogue_keeps_its_id():
    assert gpu_name("voodoo-2") == "voodoo-2"


def test_a_device_is_found_in_the_catalogue_by_its_name_and_memory_and_a_cpu_is_not():
    card = gpus()["a10"]
    assert gpu_of(make_card(name=card.torch_names[0], capacity_bytes=card.total_bytes)).id == "a10"
    assert gpu_of(make_device()) is None
