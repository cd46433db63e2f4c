"""History, comparison, matrix and export in a real browser: what is set stands in the address."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from analysis.models import RunKind
from engine.tune.spec import TuneSpec
from tests.browser.chromium import Visitor
from tests.browser.conftest import Visit
from tests.factories import make_card, make_device, make_measured_run, make_run
from tests.factories.history import store
from tests.factories.matrix import estimated, measured
from tests.factories.pages import finished
from tests.factories.speeds import make_bound_result
from tests.factories.tuned import COMMAND

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


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
