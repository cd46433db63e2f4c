"""What holds for every page: it fits a phone, reads without JavaScript, is accessible, and asks no other host.

Accessible is what axe-core finds no fault with, at levels A and AA of WCAG 2.1.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from analysis.models import ALL_GPUS, Run, State
from analysis.runs import services
from analysis.templatetags.units import trend_address
from engine.estimate.gpus import gpus
from tests.browser.chromium import PHONE, Visitor
from tests.browser.conftest import Visit
from tests.factories import (
    make_card,
    make_claimed_estimate,
    make_claimed_run,
    make_device,
    make_measured_run,
    make_result_that_does_not_fit,
    make_run,
    make_user,
)
from tests.factories.reports import SendingClient, body_of
from tests.factories.watched import FULL, make_watched
from tests.fake_engine import estimate_of

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


PARTS = ("curves", "probes", "environment", "log")


@pytest.fixture
def addresses(transactional_db: None) -> dict[str, str]:
    """Every page, with a run in every state behind them, on devices whose names are long."""
    device = make_device(name="A device with quite a long name for so small a screen")
    card = make_card()
    measured = [make_measured_run(card), make_measured_run(card, optimizer="sgd")]
    ended = {state: make_run(card) for state in (State.FAILED, State.CANCELLED, State.INTERRUPTED)}
    for state, run in ended.items():
        Run.objects.filter(pk=run.pk).update(state=state, error_code="internal", error_message="It broke. " * 9)
    hopeless = make_claimed_run(device)
    services.run_finish(run_id=hopeless.pk, token=hopeless.token, result=make_result_that_does_not_fit().to_dict())
    runs = {"result": measured[0], "does not fit": hopeless, "live": make_claimed_run(card), "queued": make_run(card)}
    runs |= {str(state): run for state, run in ended.items()}
    watched = make_watched(error=FULL).to_send(with_output=True).to_dict()
    sent = SendingClient(make_user("ann")).send_result(body_of(watched))
    runs |= {"watch": Run.objects.get(pk=sent.json()["id"])}
    runs |= {"estimate": make_estimated("a10"), "estimate of all": make_estimated(ALL_GPUS)}
    return {
        **{"start": "/", "history": "/runs/", "estimates": "/estimates/", "matrix": "/matrix/", "fleet": "/fleet/"},
        **{
            "scripts": "/commands/",
            "no match": "/runs/?model=gpt2",
            "account": "/account/",
            "password": "/account/password/",
        },
        "notifications": "/account/notifications/",
        **{"choice of runs": "/compare/", "help": "/help/", "a document": "/help/measuring/", "devices": "/devices/"},
        **{f"result, {part}": f"{measured[0].get_absolute_url()}#{part}" for part in PARTS},
        "compare": "/compare/?" + "&".join(f"ids={run.pk}" for run in measured),
        **{
            "trend": trend_address(measured[0]),
            "series": "/trend/",
            "advice": f"{measured[0].get_absolute_url()}advice/",
        },
        **{f"run, {name}": run.get_absolute_url() for name, run in runs.items()},
    }


def make_estimated(gpu: str) -> Run:
    """A finished estimate of one card, or of all."""
    run = make_claimed_estimate(gpu)
    cards = list(gpus().values()) if gpu == ALL_GPUS else [gpus()[gpu]]
    result = {"estimates": [estimate_of(run.run_spec, card) for card in cards]}
    services.run_finish(run_id=run.pk, token=run.token, result=result)
    return run


def test_no_page_is_wider_than_a_phone(phone: Visitor, addresses: dict[str, str]) -> None:
    widths = {}
    for name, address in addresses.items():
        phone.open(address)
        widths[name] = phone.width
    assert {name: width for name, width in widths.items() if width > PHONE} == {}


@pytest.mark.nightly
def test_every_tab_of_a_result_is_in_sight_on_a_phone(phone: Visitor, addresses: dict[str, str]) -> None:
    phone.open(addresses["result, environment"])
    tabs = "[...document.querySelectorAll('.tabs a')].map(e => e.getBoundingClientRect())"
    places = phone.page.evaluate(f"{tabs}.map(({{left, right, top}}) => [left, right, top])")
    assert len(places) > 4
    assert all(left >= 0 and right <= PHONE and top >= 0 for left, right, top in places)


@pytest.mark.nightly
def test_no_table_of_a_result_or_a_comparison_scrolls_sideways_on_a_phone(
    phone: Visitor, addresses: dict[str, str]
) -> None:
    tables = "[...document.querySelectorAll('main .scroll')].filter(e => e.checkVisibility())"
    wide = f"{tables}.filter(e => e.scrollWidth > e.clientWidth)"
    for name in ("result, probes", "compare", "run, failed"):
        phone.open(addresses[name])
        assert phone.page.evaluate(f"{wide}.map(e => e.innerText.slice(0, 60))") == [], name


@pytest.mark.nightly
def test_what_can_be_tapped_is_large_enough(phone: Visitor, addresses: dict[str, str]) -> None:
    small = (
        "[...document.querySelectorAll('button, select, .button, summary, nav a, input:not([type=checkbox])')]"
        ".filter(e => e.checkVisibility() && e.type !== 'radio' && e.getBoundingClientRect().height < 44)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    found = {}
    for name in ("start", "history", "run, result", "run, live"):
        phone.open(addresses[name])
        found[name] = phone.page.evaluate(small)
    assert {name: controls for name, controls in found.items() if controls} == {}


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_page_is_accessible_logs_no_error_and_asks_no_other_host(
    visit: Visit, live_server: Any, alice: User, addresses: dict[str, str], colours: str
) -> None:
    window = visit(live_server.url, alice, color_scheme=colours)
    found = {}
    for name, address in addresses.items():
        window.open(address)
        found[name] = window.broken_rules()
    assert {name: broken for name, broken in found.items() if broken} == {}
    assert (window.errors, window.foreign_requests) == ([], [])


def test_axe_finds_what_is_wrong(window: Visitor) -> None:
    make_device()
    window.open("/")
    window.page.evaluate("document.querySelector('label[for=id_model]').remove(); document.title = ''")
    assert {"select-name", "document-title"} <= {rule for rule, _ in window.broken_rules()}


@pytest.mark.nightly
def test_everything_reads_without_javascript(
    visit: Visit, live_server: Any, alice: User, addresses: dict[str, str]
) -> None:
    plain = visit(live_server.url, alice, java_script_enabled=False)
    plain.open(addresses["run, result"])
    expect(plain.page.get_by_role("heading", level=1)).to_contain_text("Use batch size 8: 2.00x as fast as your 4")
    plain.open(addresses["result, curves"])
    expect(plain.page.locator(".curve").first).to_be_visible()
    plain.open(addresses["compare"])
    expect(plain.page.get_by_role("heading", name="Results")).to_be_visible()
    plain.open(addresses["start"])
    plain.page.get_by_text("More settings").click()
    for label in ("Model", "Sequence length", "Image size"):
        expect(plain.page.get_by_label(label, exact=True)).to_be_visible()
