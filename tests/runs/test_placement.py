"""What a wish for a device comes to."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from analysis.runs.queue.placement import Placement, placement_find, placement_of
from engine.errors import SpecError
from engine.text.units import GIB
from tests.factories import make_card, make_device, make_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("name", "kind"), [("auto", "cuda"), ("cuda", "cuda")])
def test_a_run_without_a_wish_may_go_to_any_of_the_best_kind(name, kind):
    make_device(capacity_bytes=500 * GIB)
    make_card()
    assert placement_find(name) == Placement(kind=kind)


@pytest.mark.parametrize("name", ["cpu", "cuda:1"])
def test_a_device_that_is_named_is_that_device(name):
    devices = {device.device: device for device in (make_device(), make_card(0), make_card(1))}
    assert placement_find(name) == Placement(device=devices[name])


def test_of_two_devices_of_one_name_the_one_whose_host_is_up_is_meant():
    make_card(host="away", last_seen_at=timezone.now() - timedelta(hours=1))
    up = make_card(host="up")
    assert placement_find("cuda:0") == Placement(device=up)


@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_a_class_is_any_part_of_the_vendors_name(name):
    make_card(name="NVIDIA A100-SXM4-80GB")
    assert placement_find(name, " a100 ") == Placement(kind="cuda", device_class="a100")


@pytest.mark.parametrize(
    ("name", "device_class", "field", "expected"),
    [
        ("xpu", "", "device", "no enabled device xpu; available: cuda:0"),
        ("cuda:7", "", "device", "available: cuda:0"),
        ("cuda", "H100", "device_class", "available: NVIDIA A100-SXM4-80GB"),
        ("cuda:0", "A100", "device_class", "allowed with `auto`"),
        ("auto", "A\x00", "device_class", "part of a card's name"),
        ("auto", "A" * 101, "device_class", "at most 100"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(name, device_class, field, expected):
    make_card(0)
    make_card(1, enabled=False)
    with pytest.raises(SpecError, match=expected) as caught:
        placement_find(name, device_class)
    assert caught.value.field == field


def test_without_any_device_the_error_says_how_to_get_one():
    with pytest.raises(SpecError, match="manage.py up"):
        placement_find("auto")


def test_a_device_of_others_is_not_offered(alice, root):
    card = make_card()
    card.allowed_users.add(alice)
    assert placement_find("auto", user=alice) == Placement(kind="cuda")
    for user in (root, AnonymousUser(), None):
        with pytest.raises(SpecError, match="no enabled device"):
            placement_find("auto", user=user)


def test_a_stored_run_asks_again_for_what_it_asked():
    run = make_run(make_card())
    assert placement_of(run) == Placement(device=run.requested_device)
