"""The start page and the lists in a real browser: search, keyboard, filters; what is set stands in the address."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from analysis.models import Run, RunKind
from engine.trainings.script.spec import TuneSpec
from tests.browser.chromium import PHONE, WIDE, Visitor
from tests.browser.conftest import Visit
from tests.factories import make_card, make_device, make_measured_run, make_run
from tests.factories.history import store
from tests.factories.matrix import estimated, measured
from tests.factories.pages import finished
from tests.factories.speeds import make_bound_result
from tests.factories.tuned import COMMAND

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


def test_a_filtered_history_is_the_same_for_whoever_gets_its_address(window: Visitor, visit: Visit, root: User) -> None:
    device = make_device()
    make_run(device, model="gpt2"), make_run(device, model="bert")
    window.open("/runs/")
    window.page.get_by_text("Filter and sort").click()
    window.page.get_by_label("Model", exact=True).select_option("gpt2")
    window.page.get_by_role("button", name="Show", exact=True).click()
    window.page.wait_for_url("**model=gpt2**")
    other = visit(window.site, root)
    other.open(window.page.url.removeprefix(window.site))
    for each in (window, other):
        expect(each.page.get_by_role("row").filter(has_text="GPT-2 small")).to_have_count(1)
        expect(each.page.get_by_role("row").filter(has_text="BERT base")).to_have_count(0)


def test_a_screen_shows_twelve_runs_of_one_line_and_cuts_no_date(window: Visitor) -> None:
    name = "A sweep with a name that is far longer than there is room for on a single line of a list"
    store(
        20, name=name, device_name="A device with quite a long name", speedup=1.39, speedup_low=1.36, speedup_high=1.42
    )
    make_run(make_device())
    window.resize(1280, 800)
    window.open("/runs/")
    rows = window.page.locator(".history tbody tr").all()
    boxes = [row.bounding_box() or {} for row in rows]
    assert {round(box["height"]) for box in boxes} == {40}
    assert sum(box["y"] + box["height"] <= 800 for box in boxes) >= 12
    right = window.page.locator(".history .scroll").evaluate("e => e.scrollWidth - e.clientWidth")
    assert right == 0  # the last column is whole


def test_every_kind_of_run_leaves_the_date_whole_and_a_script_its_settings(window: Visitor) -> None:
    device, spec = make_device(), TuneSpec(COMMAND, current_batch_size=4)
    finished(make_bound_result(), device)
    measured(), estimated("rtx-4090")
    script = "examples/pytorch/language-modeling/run_clm_with_a_long_name.py"
    store(1, model=script, kind=RunKind.COMMAND, spec=spec.to_dict(), device_name="RTX 4090")
    window.resize(1280, 800)
    window.open("/runs/")
    table = window.page.locator(".history .scroll")
    assert table.evaluate("e => e.scrollWidth - e.clientWidth") == 0
    line = window.page.get_by_role("row").filter(has_text="examples/").locator("th")
    settings = line.locator(".settings")
    assert settings.bounding_box()["x"] < line.bounding_box()["x"] + line.bounding_box()["width"] - 40
    search = window.page.get_by_placeholder("Search name")
    assert search.evaluate("e => { e.value = e.placeholder; return e.scrollWidth <= e.clientWidth; }")


def test_a_run_takes_at_most_90_pixels_of_a_phone(phone: Visitor) -> None:
    store(3, name="nightly", device_name="A device with quite a long name", largest_batch_size=64, certified=True)
    phone.open("/runs/")
    heights = phone.page.locator(".history tbody tr").evaluate_all(
        "es => es.map(e => e.getBoundingClientRect().height)"
    )
    assert max(heights) <= 90


def test_the_actions_stay_in_sight_and_work_without_a_script(visit: Visit, live_server: Any, alice: User) -> None:
    runs = store(40, requested_by=alice)
    plain = visit(live_server.url, alice, java_script_enabled=False)
    plain.open("/runs/")
    expect(plain.page.get_by_role("button", name="Delete")).to_be_hidden()
    plain.page.locator(f'input[name="run"][value="{runs[0].pk}"]').check()  # the last line
    expect(plain.page.get_by_role("button", name="Delete")).to_be_in_viewport()
    plain.page.locator("#bulk-tag").fill("paper")
    plain.page.locator("#bulk-tag").press("Enter")
    expect(plain.page.get_by_role("status")).to_have_text("1 tagged.")


def test_two_ticked_runs_are_compared(window: Visitor) -> None:
    runs = [make_measured_run(make_card(number)) for number in range(2)]
    window.open("/runs/")
    for run in runs:
        window.page.locator(f'input[name="run"][value="{run.pk}"]').check()
    window.page.get_by_role("button", name="Compare (2)").click()
    expect(window.page.get_by_role("heading", level=1)).to_contain_text("Both fit 8")
    expect(window.page.locator(".curve").first).to_be_visible()
    assert (window.errors, window.foreign_requests) == ([], [])
