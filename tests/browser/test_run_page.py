"""A run's page in a real browser: parts, copying, charts on a phone, a live page, and notifications."""

import re
import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from analysis.models import Subscription
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from analysis.runs.services import LogLine
from engine.questions.faster.spec import FasterSpec
from tests.browser.chromium import Visitor
from tests.browser.conftest import Visit
from tests.factories import make_claimed_run, make_device, make_measured_run, make_probe, make_result

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_the_texts_of_a_chart_can_be_read_on_a_phone(phone: Visitor) -> None:
    run = make_measured_run(make_device())
    phone.open(f"{run.get_absolute_url()}#curves")
    units = "svg => parseFloat(getComputedStyle(svg.querySelector('text')).fontSize)"
    scale = "svg => svg.clientWidth / svg.viewBox.baseVal.width"
    picture = phone.page.locator(".curve:visible").first
    assert picture.evaluate(units) * picture.evaluate(scale) > 10
    assert (phone.errors, phone.foreign_requests) == ([], [])


def shown_parts(visitor: Visitor) -> list[str]:
    parts: list[str] = visitor.page.evaluate(
        "[...document.querySelectorAll('.part')].filter(part => part.checkVisibility()).map(part => part.id)"
    )
    return parts


@pytest.mark.parametrize("has_script", [True, False])
def test_one_part_of_a_result_is_shown_and_each_has_an_address(
    visit: Visit, live_server: Any, alice: User, has_script: bool
) -> None:
    run = make_measured_run(make_device())
    visitor = visit(live_server.url, alice, java_script_enabled=has_script)
    visitor.open(run.get_absolute_url())
    visible = visitor.page.locator(".part:visible")
    expect(visible).to_have_count(1)
    expect(visible).to_have_attribute("id", "result")
    visitor.page.get_by_role("link", name="Probes", exact=True).focus()
    visitor.page.keyboard.press("Enter")
    expect(visible).to_have_attribute("id", "probes")
    visitor.open(f"{run.get_absolute_url()}#log")
    expect(visible).to_have_attribute("id", "log")
    visitor.open(f"{run.get_absolute_url()}#assumptions")
    expect(visible).to_have_attribute("id", "result")
    assert visitor.errors == []


@pytest.mark.parametrize(
    ("query", "parts"),
    [("", ["result", "curves"]), ("?print=all", ["result", "curves", "probes", "environment", "log"])],
)
def test_the_answer_and_its_curves_are_printed_and_the_rest_on_request(
    window: Visitor, query: str, parts: list[str]
) -> None:
    run = make_measured_run(make_device())
    window.open(f"{run.get_absolute_url()}{query}#probes")
    window.page.emulate_media(media="print")
    assert shown_parts(window) == parts
    expect(window.page.locator(".tabs")).to_be_hidden()


@pytest.mark.nightly
def test_a_result_takes_two_pages_of_paper(window: Visitor) -> None:
    window.open(make_measured_run(make_device()).get_absolute_url())
    document = window.page.pdf(format="A4")
    assert len(re.findall(rb"/Type /Page\b", document)) <= 2


@pytest.mark.parametrize(("role", "name"), [("link", "Copy the settings"), ("button", "Copy the setting")])
@pytest.mark.each_value
def test_the_setting_is_copied(visit: Visit, live_server: Any, alice: User, role: Any, name: str) -> None:
    run = make_measured_run(make_device())
    visitor = visit(live_server.url, alice, permissions=["clipboard-read", "clipboard-write"])
    visitor.open(f"{run.get_absolute_url()}{'#probes' if role == 'link' else ''}")
    visitor.page.get_by_role(role, name=name, exact=True).click()
    expect(visitor.page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert "per_device_train_batch_size=8" in visitor.page.evaluate("navigator.clipboard.readText()")


def test_a_log_that_was_not_shown_begins_at_its_end(window: Visitor) -> None:
    run = make_claimed_run(make_device())
    lines = [LogLine("info", f"line {number}") for number in range(60)]
    services.log_add(run_id=run.pk, token=run.token, lines=lines, first_sequence=1)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    window.open(run.get_absolute_url())
    window.page.get_by_role("link", name="Log, notes").click()
    expect(window.page.get_by_text("line 59")).to_be_in_viewport()


def test_what_cannot_be_copied_is_selected(window: Visitor) -> None:
    run = make_measured_run(make_device())
    window.page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    window.open(run.get_absolute_url())
    window.page.get_by_role("button", name="Copy the setting").click()
    expect(window.page.get_by_role("status").filter(has_text="Ctrl+C")).to_be_visible()
    assert "per_device_train_batch_size=8" in window.page.evaluate("getSelection().toString()")


def test_the_live_page_turns_into_the_result_by_itself(window: Visitor) -> None:
    run = make_claimed_run(make_device())
    window.open(run.get_absolute_url())
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(24), sequence=1)
    expect(window.page.get_by_role("row").filter(has_text="24")).to_be_visible()
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    expect(window.page.get_by_role("heading", level=1)).to_contain_text("2.00x as fast as your 4")
    assert window.errors == []


def test_the_tab_tells_step_and_time_and_at_the_end_what_was_found(window: Visitor) -> None:
    run = make_claimed_run(make_device())
    window.open(run.get_absolute_url())
    expect(window.page).to_have_title("1 of 7 · BERT tiny · MemoryMark")
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="timing")
    progress = {"round": 4, "rounds_expected": 9, "ends_at": time.time() + 290}
    services.attempt_set(run_id=run.pk, token=run.token, progress=progress)
    expect(window.page).to_have_title(re.compile("6 of 7 · [45] min left · BERT tiny · MemoryMark"))
    expect(window.page.locator("[aria-current=step]")).to_contain_text("round 4 of about 9")
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    expect(window.page).to_have_title("✓ 8 · BERT tiny · MemoryMark")
    assert window.errors == []


def test_the_clock_of_a_race_goes_on_saying_at_most(window: Visitor) -> None:
    spec = FasterSpec(model="bert-tiny", time_budget_seconds=1_800.0)
    run = services.run_create(spec=spec, place=Placement(device=make_device()))
    assert services.run_claim(device=run.requested_device, owner="tester", run_id=run.pk) is not None
    window.open(run.get_absolute_url())
    expect(window.page.locator(".live-left")).to_have_text("At most 30 min left (its time budget)")
    later = "element => { element.dataset.leftUntil = new Date(Date.now() + 100_000).toISOString() }"
    window.page.locator(".live-left").evaluate(later)
    expect(window.page.locator(".live-left")).to_have_text("At most 2 min left (its time budget)")
    assert window.errors == []


def test_a_live_page_whose_session_ended_asks_to_log_in(window: Visitor) -> None:
    run = make_claimed_run(make_device())
    window.open(run.get_absolute_url())
    window.context.clear_cookies()
    window.page.wait_for_url("**/login/**")
    expect(window.page.get_by_role("heading", level=1)).to_have_text("Log in")


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
