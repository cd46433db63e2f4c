"""The frame of every page and of the panel: the menu, its current entry, the footer, and addresses of parts."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from engine import __version__
from tests.factories import make_device, make_measured_run

pytestmark = pytest.mark.django_db

READERS = ["Start", "Runs", "Compare", "Estimates", "Matrix", "Trend", "Fleet"]


def menu(client: Client, address: str) -> list[str]:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    found = re.search(r'<nav class="menu"[^>]*>(.*?)</nav>', text, re.DOTALL)
    assert found is not None
    return re.findall(r">([^<]+)</a>", found[1])


def current(client: Client, address: str) -> str:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    return " ".join(re.findall(r'aria-current="(?:page|true)">([^<]+)</a>', text))


def test_the_panel_has_the_menu_of_the_pages(root_client: Client) -> None:
    assert menu(root_client, "/") == menu(root_client, "/admin/") == [*READERS, "Admin"]


def test_the_panel_is_offered_to_managers_alone(alice_client: Client) -> None:
    assert menu(alice_client, "/") == READERS


def test_a_guest_is_offered_what_is_open(settings) -> None:
    settings.PUBLIC_READ_ONLY = True
    assert menu(Client(), "/matrix/") == ["Start", "Estimates", "Matrix"]


def test_the_entry_of_a_page_and_of_what_is_below_it_is_current(root_client: Client) -> None:
    run = make_measured_run(make_device())
    shown = {"/": "Start", "/runs/": "Runs", run.get_absolute_url(): "Runs", "/admin/queue/": "Admin"}
    assert {address: current(root_client, address) for address in shown} == shown


@pytest.mark.parametrize("address", ["/", "/admin/"])
def test_the_footer_names_the_version_and_leads_to_help_and_api(root_client: Client, address: str) -> None:
    text = root_client.get(address, headers={"accept": "text/html"}).content.decode()
    foot = text.split("<footer", 1)[1]
    assert f"MemoryMark {__version__}" in foot
    assert [place for place in ("/help/", "/help/#documents", "/api/docs/") if f'href="{place}"' not in foot] == []


@pytest.mark.parametrize("address", ["/devices/", "/fleet/now/"])
def test_a_part_of_a_page_is_a_page_where_it_is_opened_by_itself(alice_client: Client, address: str) -> None:
    assert "<h1" in alice_client.get(address).content.decode()
    assert "<h1" not in alice_client.get(address, headers={"HX-Request": "true"}).content.decode()
