"""Notifications in a real browser: by keyboard, on a phone, on a click alone, and a tab that follows its run."""

import re

import pytest
from playwright.sync_api import expect

from analysis.models import Subscription
from analysis.runs import services
from tests.browser.chromium import Visitor
from tests.browser.conftest import Visit
from tests.factories import make_claimed_run, make_device, make_result

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# a headless browser has no notifications of its own: this stands for it, and remembers what it was given
STAND_IN = """
window.Notification = class extends EventTarget {
  static permission = sessionStorage.getItem("permission") || "default";
  static async requestPermission() {
    sessionStorage.setItem("permission", "granted");
    sessionStorage.setItem("requests", Number(sessionStorage.getItem("requests")) + 1);
    return (this.permission = "granted");
  }
  constructor(title) { super(); sessionStorage.setItem("shown", title); }
};
Object.defineProperty(document, "hidden", { get: () => sessionStorage.getItem("hidden") === "yes" });
"""


def test_a_subscription_is_made_by_keyboard(window: Visitor) -> None:
    window.open("/account/notifications/")
    page = window.page
    page.get_by_label("Name").focus()
    page.keyboard.type("ci")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("https://ci.example/hook")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="The secret is shown only now.")).to_be_visible()
    assert Subscription.objects.get().url == "https://ci.example/hook"
    assert window.broken_rules() == []
    assert (window.errors, window.foreign_requests) == ([], [])


def test_the_browser_is_requested_on_a_click_alone_and_hears_of_the_end_of_a_hidden_tab(window: Visitor) -> None:
    page = window.page
    page.add_init_script(STAND_IN)
    run = make_claimed_run(make_device())
    window.open("/account/notifications/")
    assert page.evaluate("sessionStorage.getItem('requests')") is None
    page.get_by_role("button", name="Notify this browser when a run ends").click()
    expect(page.get_by_role("button", name="Do not notify this browser")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('requests')") == "1"
    window.open(run.get_absolute_url())
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", "/static/img/favicon-running.svg")
    page.evaluate("sessionStorage.setItem('hidden', 'yes')")
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", "/static/img/favicon.svg")
    expect(page).to_have_title(re.compile("✓ 8"))
    assert "✓ 8" in page.evaluate("sessionStorage.getItem('shown')")


def test_without_that_choice_the_end_of_a_run_shows_no_notification(visit: Visit, window: Visitor) -> None:
    page = window.page
    page.add_init_script(STAND_IN)
    run = make_claimed_run(make_device())
    window.open(run.get_absolute_url())
    page.evaluate("sessionStorage.setItem('hidden', 'yes')")
    services.run_fail(run_id=run.pk, token=run.token, code="bad_spec", message="x")
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", "/static/img/favicon-failed.svg")
    assert page.evaluate("sessionStorage.getItem('shown')") is None
