"""The admin panel, the documents and the API's description in a browser: on a phone, and under our content policy."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from analysis.models import Run, SavedView
from analysis.pages.help.documents import NAMES
from analysis.permissions import MANAGER
from analysis.runs import services
from tests.browser.chromium import PHONE, WIDE, Visitor
from tests.browser.conftest import Visit
from tests.factories import make_card, make_measured_run, make_run, make_user

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SELECT2 = "select2"
DJANGOS = {"aria-prohibited-attr", "aria-input-field-name"}
"""Faults of scripts that come with Django: the filter of its two-list choice, and select2."""


@pytest.fixture
def boss(transactional_db: None) -> User:
    return make_user("boss", MANAGER)


@pytest.fixture
def addresses(boss: User) -> list[str]:
    card = make_card()
    run = make_measured_run(card)
    make_run(card, requested_by=boss)
    services.runs_set_baseline(run_ids=[run.pk], by=boss, is_baseline=True)
    rows = ("device/", f"device/{card.pk}/change/", "run/", f"run/{run.pk}/change/", "auditentry/", "retentionrule/")
    people = (f"auth/user/{boss.pk}/change/", "auth/user/", "analysis/quota/add/")
    return ["", "queue/", *(f"analysis/{row}" for row in rows), *people]


@pytest.mark.nightly
def test_no_page_of_the_panel_is_wider_than_a_phone(
    visit: Visit, live_server: Any, boss: User, addresses: list[str]
) -> None:
    phone = visit(live_server.url, boss, PHONE)
    widths = {}
    for address in addresses:
        phone.open(f"/admin/{address}")
        widths[address] = phone.width
    assert {address: width for address, width in widths.items() if width > PHONE} == {}


def test_the_panel_breaks_no_content_policy_and_asks_no_other_host(
    visit: Visit, live_server: Any, boss: User, addresses: list[str]
) -> None:
    window = visit(live_server.url, boss)
    for address in addresses:
        window.open(f"/admin/{address}")
    assert (window.errors, window.foreign_requests) == ([], [])


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_panel_is_accessible(
    visit: Visit, live_server: Any, boss: User, addresses: list[str], colours: str
) -> None:
    window = visit(live_server.url, boss, color_scheme=colours)
    found = {}
    for address in addresses:
        window.open(f"/admin/{address}")
        found[address] = [(rule, at) for rule, at in window.broken_rules() if rule not in DJANGOS and SELECT2 not in at]
    assert {address: broken for address, broken in found.items() if broken} == {}


def test_people_are_found_by_typing_and_a_device_is_kept_for_them(
    visit: Visit, live_server: Any, boss: User, alice: User
) -> None:
    card = make_card()
    window: Visitor = visit(live_server.url, boss)
    window.open(f"/admin/analysis/device/{card.pk}/change/")
    window.page.locator(".field-allowed_users .select2-selection").click()
    window.page.keyboard.type("ali")
    window.page.locator(".select2-results__option", has_text="alice").click()
    window.page.get_by_role("button", name="Save", exact=True).click()
    window.page.wait_for_url(f"{live_server.url}/admin/analysis/device/")
    assert list(card.allowed_users.all()) == [alice]
    assert window.errors == []


def test_the_runs_of_the_panel_fit_a_screen_of_1280_px(visit: Visit, live_server: Any, boss: User) -> None:
    card = make_card(name="NVIDIA A100-SXM4-80GB of a long name")
    run = make_measured_run(card, requested_by=boss)
    Run.objects.filter(pk=run.pk).update(
        reported_from="a-node-with-quite-a-long-name.example.org", model="llama-3.1-8b-instruct", priority=1
    )
    window = visit(live_server.url, boss)
    window.open("/admin/analysis/run/")
    cut = "(e => e.scrollWidth - e.clientWidth)(document.querySelector('#changelist .results'))"
    assert window.page.evaluate(cut) <= 0


@pytest.mark.nightly
@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_every_document_fits_its_page_and_breaks_no_rule(window: Visitor, width: int) -> None:
    window.resize(width)
    for path in ("/help/", "/help/?q=memory", *(f"/help/{name}/" for name in NAMES)):
        window.open(path)
        assert window.width <= width, path
        assert window.broken_rules() == [], path
    assert window.errors == []


def test_code_of_a_document_has_a_copy_button_and_the_contents_lead_to_headings(window: Visitor) -> None:
    window.open("/help/tune/")
    window.page.get_by_role("button", name="Copy these lines").first.wait_for()
    link = window.page.locator(".contents-aside a").last
    link.click()
    anchor = link.get_attribute("href")
    assert window.page.url.endswith(str(anchor))
    assert window.page.locator(str(anchor)).is_visible()


def test_the_description_is_drawn_without_a_look_outside(window: Visitor) -> None:
    window.open("/api/docs/")
    expect(window.page.locator("#operations-runs-runs_create")).to_be_visible()
    assert (window.errors, window.foreign_requests, window.broken_rules()) == ([], [], [])
    window.resize(PHONE)
    assert window.width == PHONE


def test_the_window_below_the_footer_has_the_colour_of_the_page(window: Visitor) -> None:
    window.open("/api/docs/")
    colour = "getComputedStyle(document.{}).backgroundColor"
    assert window.page.evaluate(colour.format("documentElement")) == window.page.evaluate(colour.format("body"))


def test_what_is_tried_out_is_done_as_who_is_signed_in(window: Visitor) -> None:
    window.open("/api/docs/")
    operation = window.page.locator("[id$='-saved_views_create']")
    operation.locator(".opblock-summary-control").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("textbox").fill('{"name": "mine", "query": "state=finished"}')
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").nth(1)).to_contain_text("201")
    assert SavedView.objects.get().owner.username == "alice"
    assert window.errors == []
