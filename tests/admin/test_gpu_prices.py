"""A lab's own price stands in for the catalogue's first value, and only staff set it."""

import pytest

from analysis.models import GpuPrice
from analysis.runs.gpu_catalog import gpu_choices, gpu_name, gpu_of, prices
from engine.estimate.gpus import gpus
from tests.factories import make_card, make_device

pytestmark = pytest.mark.django_db

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
