"""The admin panel shows everything and lets nobody edit what was measured."""

import pytest
from django_q.models import OrmQ

from analysis.models import Host, Measurement, Run, RunLog
from analysis.runs import services
from analysis.runs.services import LogLine
from tests.factories import make_claimed_run, make_device, make_host, make_probe

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
