"""What pages of the panel say of devices, queues and people: a healthy system looks healthy."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ

from analysis.permissions import MANAGER
from tests.factories import make_card, make_user
from tests.pages.fleet.test_fleet_page import words

pytestmark = pytest.mark.django_db


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
    shown = text(root_client, "")
    assert shown.index(" Notifications ") < shown.index(" Subscriptions ")
    assert " Other " not in shown


def test_the_filters_stand_above_the_table_and_are_open_while_one_is_set(root_client: Client) -> None:
    page = root_client.get("/admin/analysis/run/").content.decode()
    assert page.index('id="changelist-filter"') < page.index('id="changelist-form"')
    assert '<details class="filters">' in page
    assert '<details class="filters" open>' in root_client.get("/admin/analysis/run/?state=failed").content.decode()
