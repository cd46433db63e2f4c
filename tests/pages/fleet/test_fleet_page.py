"""The fleet page: devices by host, whose memory is in use, what runs and waits, and how old all of it is."""

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.formatting import bytes_text
from analysis.models import Device, DeviceDay, Run
from analysis.pages.fleet.context import memory_parts
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from analysis.workers import device_discovery
from engine.text.units import GIB
from tests.factories import make_card, make_claimed_run, make_device, make_estimate, make_host, make_run, make_spec
from tests.factories.matrix import card

pytestmark = pytest.mark.django_db

CARD_BYTES = 80 * GIB


def page(client: Client, address: str = "/fleet/") -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def read(seconds_ago: float = 0, **columns: Any) -> dict[str, Any]:
    at = timezone.now() - timedelta(seconds=seconds_ago)
    return {"capacity_bytes": CARD_BYTES, "memory_used_bytes": 40 * GIB, "memory_read_at": at, **columns}


def stretches(*, is_running: bool, **columns: Any) -> list[tuple[str, int, str]]:
    device = Device(**{"kind": "cuda", "capacity_bytes": CARD_BYTES, "memory_used_bytes": 40 * GIB, **columns})
    parts = memory_parts(device, is_running=is_running)
    return [(part.css_class, part.size_bytes // GIB, part.x_percent) for part in parts]


def test_while_something_runs_what_others_held_is_told_apart() -> None:
    shown = stretches(is_running=True, foreign_used_bytes=8 * GIB)
    assert shown == [("part-ours", 32, "0.000%"), ("part-foreign", 8, "40.000%")]


def test_while_nothing_of_ours_runs_all_in_use_is_others() -> None:
    assert stretches(is_running=False, foreign_used_bytes=None) == [("part-foreign", 40, "0.000%")]


def test_whose_it_is_stays_unknown_where_nothing_was_read_before() -> None:
    assert stretches(is_running=True, foreign_used_bytes=None) == [("part-any", 40, "0.000%")]


def test_a_cpus_memory_is_its_hosts_and_nobodys_in_particular() -> None:
    assert stretches(is_running=True, kind="cpu", foreign_used_bytes=None) == [("part-any", 40, "0.000%")]


def test_an_unread_memory_has_no_bar() -> None:
    assert stretches(is_running=False, memory_used_bytes=None) == []


def test_others_cannot_hold_more_than_is_in_use() -> None:
    assert stretches(is_running=True, foreign_used_bytes=60 * GIB) == [("part-foreign", 40, "0.000%")]


def test_devices_stand_under_their_hosts(alice_client: Client) -> None:
    make_card(0, "lab-1"), make_card(1, "lab-1"), make_card(0, "lab-2")
    text = words(page(alice_client))
    assert "lab-1 2 devices" in text
    assert "lab-2 1 device" in text


def test_a_host_is_shown_alone_on_request(alice_client: Client) -> None:
    make_card(0, "lab-1"), make_card(0, "lab-2", name="Other card")
    assert "Other card" not in page(alice_client, "/fleet/?host=lab-1")
    assert "No device is registered on a host called lab-9" in words(page(alice_client, "/fleet/?host=lab-9"))


def test_what_runs_and_what_waits_is_linked_with_its_position(alice_client: Client) -> None:
    card = make_card(0, **read())
    running, waiting = make_claimed_run(card), make_run(card)
    text = page(alice_client)
    assert f'href="/runs/{running.pk}/"' in text
    assert f"○ run {waiting.pk} BERT tiny waits: next" in words(text)


def test_a_run_for_any_device_stands_apart(alice_client: Client) -> None:
    make_card(0, **read())
    run = services.run_create(spec=make_spec(), place=Placement(kind="cuda", device_class="A100"))
    assert f"Waiting for any device 1 ○ run {run.pk} BERT tiny on any A100: next" in words(page(alice_client))


def test_more_waiting_runs_than_are_shown_are_counted(alice_client: Client) -> None:
    card = make_card(0, **read())
    for _ in range(5):
        make_run(card)
    assert "and 2 more wait" in words(page(alice_client))


def test_a_stale_reading_is_greyed_with_its_age(alice_client: Client) -> None:
    make_card(0, **read(seconds_ago=130))
    text = page(alice_client)
    assert 'class="fleet-device is-stale"' in text
    assert "last read 2 min ago" in words(text)


def test_a_fresh_reading_is_not_greyed(alice_client: Client) -> None:
    make_card(0, **read())
    assert 'class="fleet-device"' in page(alice_client)


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({}, "● idle"),
        ({"enabled": False}, "⊘ disabled"),
        ({"drained": True}, "⊘ drained"),
        ({"maintenance_until": datetime(2199, 1, 1, tzinfo=timezone.get_fixed_timezone(0))}, "⊘ maintenance"),
        ({"last_seen_at": datetime(2026, 1, 1, tzinfo=timezone.get_fixed_timezone(0))}, "▲ no sign of life"),
        ({"last_seen_at": None}, "▲ no sign of life"),
    ],
)
def test_the_state_is_said_in_a_word(alice_client: Client, columns: dict[str, Any], state: str) -> None:
    make_card(0, **columns)
    assert state in words(page(alice_client))


def test_a_hosts_maintenance_is_said_with_its_end_and_note(alice_client: Client) -> None:
    until = timezone.now() + timedelta(hours=1)
    make_card(0, make_host("lab-1", maintenance_until=until, maintenance_note="new disk"))
    assert f"maintenance until {until:%Y-%m-%d %H:%M} UTC: new disk" in words(page(alice_client))


def test_a_card_that_others_fill_says_which_runs_start_there(alice_client: Client) -> None:
    make_card(0, **read(foreign_used_bytes=40 * GIB))
    assert "only runs that accept a shared device start" in words(page(alice_client))


def test_memory_that_nothing_can_read_is_not_called_empty(alice_client: Client) -> None:
    make_card(0)
    assert "idle not measured no run" in words(page(alice_client))


def test_without_a_device_it_says_what_to_do(alice_client: Client) -> None:
    text = words(page(alice_client))
    assert "No device is registered yet. On each machine with GPUs, start python manage.py up" in text


def test_only_the_changing_part_is_polled_and_no_driver_is_asked(
    alice_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a page asked the driver")

    monkeypatch.setattr(device_discovery, "memory_used_bytes", refuse)
    make_card(0, **read())
    assert 'hx-get="/fleet/now/?days=30" hx-trigger="every 4s"' in page(alice_client)
    part = alice_client.get("/fleet/now/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "<nav" not in part


def test_the_database_is_asked_as_often_for_many_devices_as_for_one(alice_client: Client) -> None:
    make_claimed_run(make_card(0, "lab-1"))
    make_run(Device.objects.get())
    with CaptureQueriesContext(connection) as few:
        page(alice_client)
    for number in range(1, 6):
        make_claimed_run(make_card(number, f"lab-{number}"))
        make_run(Device.objects.get(device=f"cuda:{number}"))
    with CaptureQueriesContext(connection) as many:
        page(alice_client)
    assert len(many) == len(few)


def test_a_manager_drains_a_device_on_its_line_and_lets_it_take_runs_again(
    root_client: Client, alice_client: Client
) -> None:
    card = make_card(0)
    assert "Drain" not in words(page(alice_client))
    assert f"Drain : {card}" in words(page(root_client))
    root_client.post(f"/fleet/devices/{card.pk}/drain/", {"drained": "1"})
    assert "⊘ drained" in words(page(root_client))
    root_client.post(f"/fleet/devices/{card.pk}/drain/", {"drained": "no"})
    card.refresh_from_db()
    assert card.drained, "an unknown answer changes nothing"
    root_client.post(f"/fleet/devices/{card.pk}/drain/", {"drained": "0"})
    assert "● idle" in words(page(root_client))
    assert alice_client.post(f"/fleet/devices/{card.pk}/drain/", {"drained": "1"}).status_code == 403
    assert not Device.objects.get(pk=card.pk).drained


def test_a_card_without_a_price_of_its_own_has_the_catalogues_with_its_source(alice_client: Client) -> None:
    known = card("a10")
    assert re.search(r'title="An hour, [^"]+, 20\d\d-[^"]+">', page(alice_client))
    Device.objects.filter(pk=known.pk).update(price_per_hour_usd=7.25)
    assert re.search(r'title="An hour, set for this device">\s*\$7\.25', page(alice_client))


def test_deleted_runs_and_estimates_do_not_wait_there(alice_client: Client) -> None:
    run = make_run(make_device())
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now())
    make_estimate("a10")
    assert "run" not in words(page(alice_client)).partition("not measured no run")[2].partition("As of")[0]


def test_the_bars_are_explained_by_what_can_be_seen_on_a_cpu_too(alice_client: Client) -> None:
    make_device(memory_used_bytes=GIB, memory_read_at=timezone.now())
    text = page(alice_client)
    assert "dashed bars are older" in words(text)
    assert "grey bar" not in text


def test_a_gpu_in_whose_memory_others_are_is_not_called_idle_and_says_how_busy_it_is(alice_client: Client) -> None:
    card = make_card()
    assert "idle" in words(page(alice_client))
    Device.objects.filter(pk=card.pk).update(
        memory_used_bytes=card.capacity_bytes // 2, memory_read_at=timezone.now(), busy_percent=93
    )
    said = words(page(alice_client))
    assert "used by others" in said
    assert "93 % busy" in said
    for days_ago, used_bytes in enumerate((card.capacity_bytes // 2,) * 3 + (0,)):
        day = timezone.now().date() - timedelta(days=days_ago)
        readings = {"reading_count": 1, "used_sum_bytes": used_bytes, "most_used_bytes": used_bytes}
        DeviceDay.objects.create(device=card, day=day, **readings)
    assert f"others hold {bytes_text(card.capacity_bytes // 2)}, for 3 days" in words(page(alice_client))
    assert "used by others" in words(alice_client.get("/", headers={"accept": "text/html"}).content.decode())
