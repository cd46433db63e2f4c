"""A run's page in a real browser: its charts on a phone, and how a live page comes to its end."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from analysis.runs import services
from tests.browser.chromium import Visitor
from tests.factories import make_claimed_run, make_device, make_measured_run, make_probe, make_result

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_phone_gets_the_narrow_drawing(phone: Visitor) -> None:
    run = make_measured_run(make_device())
    phone.open(run.get_absolute_url())
    expect(phone.page.locator(".curve-narrow").first).to_be_visible()
    expect(phone.page.locator(".curve-wide").first).to_be_hidden()
    assert (phone.errors, phone.foreign_requests) == ([], [])


def test_the_live_page_turns_into_the_result_by_itself(window: Visitor) -> None:
    run = make_claimed_run(make_device())
    window.open(run.get_absolute_url())
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(24), sequence=1)
    expect(window.page.get_by_role("row").filter(has_text="24")).to_be_visible()
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    expect(window.page.get_by_role("heading", level=1)).to_contain_text("2.00x as fast as your 4")
    assert window.errors == []


def test_a_live_page_whose_session_ended_asks_to_log_in(window: Visitor) -> None:
    run = make_claimed_run(make_device())
    window.open(run.get_absolute_url())
    window.context.clear_cookies()
    window.page.wait_for_url("**/login/**")
    expect(window.page.get_by_role("heading", level=1)).to_have_text("Log in")
