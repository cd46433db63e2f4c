"""The frame of every page and of the panel: the menu, its current entry, the footer, and addresses of parts."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from analysis.pages.frame import _BELOW, _SECTIONS
from analysis.templatetags.units import trend_address
from engine import __version__
from tests.factories import make_device, make_estimate, make_measured_run

pytestmark = pytest.mark.django_db

READERS = ["Start", "Your scripts", "Runs", "Estimates", "Matrix", "Fleet"]


def menu(client: Client, address: str) -> list[str]:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    found = re.search(r'<nav class="menu"[^>]*>(.*?)</nav>', text, re.DOTALL)
    assert found is not None
    return re.findall(r">([^<]+)</a>", found[1])


def current(client: Client, address: str) -> str:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    return " ".join(re.findall(r'aria-current="(?:page|true)">([^<]+)</a>', text))


def test_the_panel_has_the_menu_of_the_pages(root_client: Client) -> None:
    assert menu(root_client, "/") == menu(root_client, "/admin/") == [*READERS, "Admin", "Help"]


def test_the_panel_is_offered_to_managers_alone(alice_client: Client) -> None:
    assert menu(alice_client, "/") == [*READERS, "Help"]


def test_a_guest_is_offered_what_is_open(settings) -> None:
    settings.PUBLIC_READ_ONLY = True
    assert menu(Client(), "/matrix/") == ["Start", "Estimates", "Matrix"]


def test_the_entry_of_a_page_and_of_what_is_below_it_is_current(root_client: Client) -> None:
    run = make_measured_run(make_device())
    shown = {"/": "Start", "/runs/": "Runs", run.get_absolute_url(): "Runs", "/admin/queue/": "Admin"}
    shown |= {"/commands/": "Your scripts", "/compare/": "Runs", "/trend/": "Runs", "/validations/": "Help"}
    shown |= {"/help/": "Help", "/help/glossary/": "Help"}
    assert {address: current(root_client, address) for address in shown} == shown


def test_a_form_with_errors_leaves_the_menu_at_start(root_client: Client) -> None:
    text = root_client.post("/runs/new/", {"model": "bert"}).content.decode()
    assert re.findall(r'aria-current="(?:page|true)">([^<]+)</a>', text) == ["Start"]


def test_compare_and_trend_are_reached_from_the_runs(alice_client: Client) -> None:
    text = alice_client.get("/runs/").content.decode()
    assert [place for place in ("/compare/", "/trend/") if f'href="{place}"' not in text] == []


def test_validations_are_reached_from_help_and_not_promoted_at_the_start(alice_client: Client) -> None:
    assert 'href="/validations/"' in alice_client.get("/help/").content.decode()
    assert 'href="/validations/"' not in alice_client.get("/", headers={"accept": "text/html"}).content.decode()


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


@pytest.mark.django_db
@pytest.mark.parametrize("is_allowed", [True, False])
def test_who_may_ask_for_estimates_without_a_login_finds_them_on_the_login_page(client, settings, is_allowed) -> None:
    settings.GUEST_ESTIMATES = is_allowed
    assert ('href="/estimates/"' in client.get("/login/").content.decode()) is is_allowed


def way(client: Client, address: str) -> list[tuple[str, str]]:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    found = re.search(r'<nav class="crumbs[^>]*aria-label="Breadcrumb">(.*?)</nav>', text, re.DOTALL)
    steps = re.findall(
        r'<a href="([^"]*)">([^<]*)</a>|<span aria-current="(page)">([^<]*)</span>', found[1] if found else ""
    )
    return [(title or here, address or mark) for address, title, mark, here in steps]


def test_a_page_below_a_section_says_where_it_stands(alice_client: Client) -> None:
    run = make_measured_run(make_device())
    above = [("Runs", "/runs/"), (f"Run {run.pk}", f"/runs/{run.pk}/")]
    assert way(alice_client, run.get_absolute_url()) == [above[0], (f"Run {run.pk}", "page")]
    assert way(alice_client, f"{run.get_absolute_url()}advice/") == [*above, ("What to paste", "page")]
    assert way(alice_client, trend_address(run)) == [("Trend", "/trend/"), ("BERT tiny on Test CPU", "page")]
    assert way(alice_client, "/compare/") == [("Runs", "/runs/"), ("Compare", "page")]
    assert way(alice_client, "/validations/") == [("Help", "/help/"), ("Validations", "page")]
    assert way(alice_client, "/account/notifications/") == [("Account", "/account/"), ("Notifications", "page")]
    assert [title for title, _ in way(alice_client, "/help/glossary/")][0] == "Help"


def test_an_estimate_stands_among_the_estimates(alice_client: Client) -> None:
    run = make_estimate()
    assert way(alice_client, run.get_absolute_url()) == [("Estimates", "/estimates/"), (f"Estimate {run.pk}", "page")]
    text = alice_client.get(run.get_absolute_url()).content.decode()
    assert re.findall(r'aria-current="true">(\w+)', text) == ["Estimates"]


@pytest.mark.parametrize("address", ["/", "/runs/", "/trend/", "/fleet/", "/account/", "/help/"])
def test_a_section_itself_needs_no_way_to_it(alice_client: Client, address: str) -> None:
    assert way(alice_client, address) == []


def test_a_guest_is_led_to_no_page_that_is_closed_to_guests(settings) -> None:
    settings.PUBLIC_READ_ONLY = True
    run = make_measured_run(make_device())
    assert way(Client(), run.get_absolute_url()) == []


def test_every_page_that_has_a_way_exists() -> None:
    for name in (*_SECTIONS, *_BELOW):
        values = {"analysis:document": ["glossary"], "analysis:run": [1], "analysis:advice": [1], "subscription": [1]}
        assert reverse(name, args=values.get(name, []))
