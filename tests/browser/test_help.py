"""The documents and the API's description in a browser: on a phone, and under the strict policy."""

import pytest
from playwright.sync_api import expect

from analysis.models import SavedView
from analysis.pages.help.documents import NAMES
from tests.browser.chromium import PHONE, WIDE, Visitor

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.django_db(transaction=True)]


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
