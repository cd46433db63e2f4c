"""Home and login: what they show, what they refuse, how often they ask the database."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from analysis.models import Device, Run
from engine.text.units import GIB
from tests.factories import make_claimed_run, make_device, make_run
from tests.factories.pages import form_data

pytestmark = pytest.mark.django_db


def page(client: Client, address: str) -> str:
    response = client.get(address, headers={"accept": "text/html"})
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_home_says_that_a_cpu_rehearses_a_card(alice_client: Client) -> None:
    make_device()
    assert "This host has no GPU, so runs use the CPU" in page(alice_client, "/")
    make_device(device="cuda:0", kind="cuda")
    assert "This host has no GPU, so runs use the CPU" not in page(alice_client, "/")


def test_home_without_a_device_says_how_to_get_one(alice_client: Client) -> None:
    text = page(alice_client, "/")
    assert "python manage.py up" in text
    assert "measurements are not possible yet" in text
    assert re.search(r'value="estimate"[^>]* checked', text)


def test_analyzing_stores_a_run_and_shows_it(alice_client: Client) -> None:
    response = alice_client.post("/runs/new/", form_data(make_device(), memory_limit_bytes="512MiB"))
    run = Run.objects.get()
    assert response.url == run.get_absolute_url()
    assert (run.model, run.state, run.requested_by.get_username()) == ("bert-tiny", "queued", "alice")


def test_a_wrong_field_stores_nothing_and_is_marked(alice_client: Client) -> None:
    response = alice_client.post("/runs/new/", form_data(make_device(), sequence_length="9999"))
    text = response.content.decode()
    assert response.status_code == 422
    assert not Run.objects.exists()
    assert re.search(r'id="id_sequence_length_error"[^>]*><li>bert-tiny takes 1 to 512', text)
    assert 'value="9999"' in text


def test_a_disabled_device_is_not_offered(alice_client: Client) -> None:
    device = make_device(enabled=False)
    assert alice_client.post("/runs/new/", form_data(device)).status_code == 422
    assert not Run.objects.exists()


def test_a_source_that_is_gone_gives_the_plain_form(alice_client: Client) -> None:
    make_device()
    assert '<option value="bert-tiny" selected>' in page(alice_client, "/?from=999")


@pytest.mark.parametrize(
    "query", ["from=x", "from=-1", f"clone={'9' * 40}", "from=²", "modle=bert", "model=bert&model=gpt2"]
)
def test_an_address_that_fills_in_nonsense_gives_the_plain_form_and_says_so(alice_client: Client, query: str) -> None:
    make_device()
    response = alice_client.get(f"/?{query}", headers={"Accept": "text/html"})
    text = response.content.decode()
    assert (response.status_code, '<option value="bert-tiny" selected>' in text) == (400, True)
    assert f"{query.partition('=')[0]}: " in text


def test_a_fresh_memory_reading_is_live_and_an_old_one_is_grey(alice_client: Client) -> None:
    device = make_device(memory_used_bytes=2 * GIB, memory_read_at=timezone.now())
    assert "is-stale" not in page(alice_client, "/devices/")
    Device.objects.filter(pk=device.pk).update(memory_read_at=timezone.now() - timedelta(minutes=6))
    text = page(alice_client, "/devices/")
    assert 'class="is-stale"' in text
    assert "last read" in text
    assert "6 min ago" in text


def test_memory_that_was_never_read_is_not_zero(alice_client: Client) -> None:
    make_device()
    text = page(alice_client, "/devices/")
    assert "not measured" in text
    assert "<meter" not in text


def test_a_busy_device_links_to_its_run(alice_client: Client) -> None:
    run = make_claimed_run()
    make_run(run.device)
    text = page(alice_client, "/devices/")
    assert f'href="/runs/{run.pk}/"' in text
    assert f"run {run.pk}, 1 waiting" in text


def test_the_login_page_logs_in(client: Client, alice: object) -> None:
    assert 'name="password"' in page(client, "/login/")
    response = client.post("/login/", {"username": "alice", "password": "alice's password"})
    assert response.url == "/"


def test_a_wrong_password_is_said(client: Client, alice: object) -> None:
    response = client.post("/login/", {"username": "alice", "password": "no"})
    assert "Name or password is wrong" in response.content.decode()
