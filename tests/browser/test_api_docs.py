"""The API's description in a real browser: drawn from this server alone, under the strict policy, and tried out."""

import pytest
from playwright.sync_api import expect

from analysis.models import SavedView
from tests.browser.chromium import PHONE, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


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
