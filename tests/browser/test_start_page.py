"""The start page in a real browser: search, keyboard, what was measured already, every wrong field at once."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from analysis.models import Run
from tests.browser.chromium import PHONE, WIDE, Visitor
from tests.browser.conftest import Visit
from tests.factories import make_card, make_device, make_measured_run

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_the_form_shows_the_input_size_that_the_model_takes(window: Visitor) -> None:
    make_device()
    window.open("/")
    window.page.get_by_text("More settings").click()
    expect(window.page.get_by_label("Sequence length")).to_be_visible()
    window.page.get_by_label("Model", exact=True).select_option("resnet")
    expect(window.page.get_by_label("Sequence length")).to_be_hidden()
    expect(window.page.get_by_label("Image size", exact=True)).to_be_visible()


def test_the_limit_of_the_rehearsal_is_not_taken_into_an_estimate(window: Visitor) -> None:
    make_device()
    window.open("/")
    limit = window.page.get_by_label("Memory limit")
    expect(limit).to_have_value("512MiB")
    window.page.get_by_label("Estimate for any GPU").check()
    expect(limit).to_have_value("")
    window.page.get_by_label("Measure on a device here").check()
    expect(limit).to_have_value("512MiB")
    limit.fill("24GiB")
    window.page.get_by_label("Estimate for any GPU").check()
    expect(limit).to_have_value("24GiB")


def test_a_model_is_found_by_typing_part_of_its_name(window: Visitor) -> None:
    make_device()
    window.open("/")
    window.page.get_by_label("Search models").fill("distil")
    expect(window.page.get_by_label("Model", exact=True)).to_have_value("distilbert")
    expect(window.page.get_by_label("Model", exact=True).locator("option")).to_have_count(1)


def test_a_search_without_a_match_shows_all_and_keeps_the_choice(window: Visitor) -> None:
    make_device()
    window.open("/")
    model = window.page.get_by_label("Model", exact=True)
    before, count = model.input_value(), model.locator("option").count()
    window.page.get_by_label("Search models").fill("no such model")
    expect(window.page.get_by_role("status").get_by_text("No matches")).to_be_visible()
    assert (model.input_value(), model.locator("option").count()) == (before, count)


def test_enter_in_the_search_sends_nothing(window: Visitor) -> None:
    make_device()
    window.open("/")
    window.page.get_by_label("Search models").fill("images")
    window.page.keyboard.press("Enter")
    expect(window.page.get_by_label("Model", exact=True)).to_be_focused()
    assert not Run.objects.exists()


def test_a_run_is_started_with_the_keyboard_alone(window: Visitor) -> None:
    make_device()
    window.open("/")
    press = window.page.keyboard.press
    press("Tab")
    expect(window.page.get_by_role("link", name="Skip to content")).to_be_focused()
    press("Enter")
    tab_to(window, "Search models")
    window.page.keyboard.type("resnet18")
    tab_to(window, "Your batch size today")
    window.page.keyboard.type("3")
    press("Enter")
    expect(window.page.get_by_role("heading", level=1)).to_contain_text("ResNet-18")
    assert Run.objects.get().spec["current_batch_size"] == 3


def tab_to(window: Visitor, label: str) -> None:
    """Press Tab until this control has the focus."""
    wanted = window.page.get_by_label(label, exact=True)
    for _ in range(25):
        window.page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"the keyboard does not reach {label!r}")


def test_every_wrong_field_is_marked_at_once(window: Visitor) -> None:
    make_device()
    window.open("/")
    window.page.get_by_text("More settings").click()
    window.page.get_by_label("Sequence length").fill("9999")
    window.page.get_by_label("Memory limit").fill("lots")
    window.page.get_by_label("Your batch size today").fill("0")
    window.page.get_by_role("button", name="Find the largest batch size").click()
    expect(window.page.get_by_text("3 fields to correct")).to_be_visible()
    for label in ("Sequence length", "Memory limit", "Your batch size today"):
        expect(window.page.get_by_label(label)).to_have_attribute("aria-invalid", "true")
    assert window.broken_rules() == []


def test_what_was_measured_is_offered_before_it_is_measured_again(window: Visitor) -> None:
    run = make_measured_run(make_card())
    window.open(f"/?clone={run.pk}")
    window.page.get_by_role("button", name="Find the largest batch size").click()
    offer = window.page.get_by_role("status").filter(has_text="Measured")
    expect(offer).to_contain_text("on NVIDIA A100-SXM4-80GB: recommended 8")
    assert Run.objects.count() == 1
    assert window.broken_rules() == []
    window.page.get_by_role("button", name="Measure again").click()
    window.page.wait_for_url(f"**/runs/{run.pk + 1}/")


def test_the_choice_of_an_estimate_shows_the_cards_of_the_catalogue(window: Visitor) -> None:
    make_device()
    window.open("/")
    window.page.get_by_label("Estimate for any GPU").check()
    expect(window.page.get_by_role("combobox", name="Device")).to_be_hidden()
    window.page.get_by_label("Search GPUs").fill("h100")
    labels = window.page.get_by_label("GPU to estimate for").locator("option").all_text_contents()
    assert labels
    assert all("H100" in label for label in labels)


def test_both_doors_have_their_button_in_the_first_window_and_the_forecast_stands_beside_it(window: Visitor) -> None:
    run = make_measured_run(make_card())
    window.page.set_viewport_size({"width": 1280, "height": 800})
    window.open(f"/?clone={run.pk}")
    button = window.page.get_by_role("button", name="Find the largest batch size")
    expect(button).to_be_in_viewport(ratio=1)
    expect(window.page.get_by_role("button", name="Create a token for it")).to_be_in_viewport(ratio=1)
    forecast = window.page.locator(".outlook")
    expect(forecast).to_contain_text(f"Up to 8 trained in run {run.pk}.")
    expect(forecast).to_contain_text("No run waits.")
    window.page.get_by_label("Memory limit").fill("4GiB")
    window.page.get_by_label("Memory limit").blur()
    expect(forecast).not_to_contain_text("trained in")
    assert window.broken_rules() == []
    assert window.errors == []


def test_no_entry_of_the_menu_is_out_of_sight_on_a_phone(phone: Visitor) -> None:
    phone.open("/")
    for link in phone.page.locator(".menu a").all():
        expect(link).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_a_lower_bound_fits_beside_its_interval(width: int, visit: Visit, live_server: Any, alice: User) -> None:
    run = make_measured_run(make_device())
    ends = {"speedup_low": 10.05, "speedup_high": 13.81, "claimed_speedup": 10.05, "is_speed_measurable": False}
    Run.objects.filter(pk=run.pk).update(speedup=None, **ends)
    window = visit(live_server.url, alice, width)
    window.open("/")
    expect(window.page.get_by_text("10.0 to 13.9x", exact=True)).to_be_visible()
    assert window.width <= width
