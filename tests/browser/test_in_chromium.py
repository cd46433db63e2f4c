"""The pages in a real browser: what scripts do, what the content policy lets through, what fits a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from analysis import services
from analysis.models import Device, Run
from tests.browser.chromium import Chromium, find_chromium
from tests.factories import make_claimed_run, make_device, make_probe, make_result, make_result_that_does_not_fit

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="session", autouse=True)
def _files_without_collectstatic() -> Iterator[None]:
    """WhiteNoise serves the sources themselves. Before the session's live server, which reads this once."""
    with override_settings(WHITENOISE_USE_FINDERS=True):
        yield


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    binary = find_chromium()
    if binary is None:
        pytest.skip("no Chromium on this machine")
    with Chromium(binary, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def site(chromium: Chromium, live_server: Any, alice: User) -> str:
    """The address of a served portal in which the browser is logged in as alice."""
    client = Client()
    client.force_login(alice)
    chromium.forget()
    chromium.set_width(1280)
    chromium.set_cookie("sessionid", client.cookies["sessionid"].value, live_server.url)
    return str(live_server.url)


def finished(device: Device, result: Any) -> Run:
    run = make_claimed_run(device)
    services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())
    return run


def test_plotly_draws_both_curves_over_the_svg_and_nothing_leaves_the_host(chromium: Chromium, site: str) -> None:
    run = finished(make_device(), make_result())
    chromium.open(site + run.get_absolute_url())
    chromium.wait_until("document.querySelectorAll('.chart.is-drawn .plot svg.main-svg').length >= 2")
    assert chromium.errors == []
    assert [address for address in chromium.requests if not address.startswith((site, "data:", "blob:"))] == []


def test_without_plotly_the_svg_stays(chromium: Chromium, site: str) -> None:
    run = finished(make_device(), make_result())
    chromium.call("Network.setBlockedURLs", urls=["*plotly*"])
    try:
        chromium.open(site + run.get_absolute_url())
        assert chromium.evaluate("document.querySelectorAll('.curve-wide').length") == 2
        assert chromium.evaluate("getComputedStyle(document.querySelector('.curve-wide')).display") == "block"
        assert chromium.evaluate("document.querySelector('.plot').hidden") is True
    finally:
        chromium.call("Network.setBlockedURLs", urls=[])


def test_a_phone_gets_the_narrow_drawing_and_does_not_load_plotly(chromium: Chromium, site: str) -> None:
    run = finished(make_device(), make_result())
    chromium.set_width(390)
    chromium.open(site + run.get_absolute_url())
    assert chromium.evaluate("getComputedStyle(document.querySelector('.curve-narrow')).display") == "block"
    assert [address for address in chromium.requests if "plotly" in address] == []


def test_the_live_page_turns_into_the_result_by_itself(chromium: Chromium, site: str) -> None:
    run = make_claimed_run(make_device())
    chromium.open(site + run.get_absolute_url())
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(24), sequence=1)
    chromium.wait_until("document.querySelector('#live-probes').textContent.includes('24')")
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    chromium.wait_until("document.querySelector('h1').textContent.includes('2.00x as fast as your 4')")
    assert chromium.errors == []


def test_a_live_page_whose_session_ended_asks_to_log_in(chromium: Chromium, site: str) -> None:
    run = make_claimed_run(make_device())
    chromium.open(site + run.get_absolute_url())
    chromium.call("Network.clearBrowserCookies")
    chromium.wait_until("location.pathname === '/login/' && document.readyState === 'complete'")
    assert chromium.evaluate("document.querySelector('h1').textContent") == "Log in"


def test_the_form_shows_the_input_size_that_the_model_takes(chromium: Chromium, site: str) -> None:
    make_device()
    chromium.open(site + "/")
    shown = "[...document.querySelectorAll('[data-models]')].filter(i => i.offsetParent).map(i => i.name).join()"
    assert chromium.evaluate(shown) == "sequence_length"
    chromium.evaluate("model.value = 'resnet'; model.dispatchEvent(new Event('change'))")
    assert chromium.evaluate(shown) == "image_size"


def test_no_page_is_wider_than_a_phone(chromium: Chromium, site: str) -> None:
    device = make_device(name="A device with quite a long name for so small a screen")
    ended = [finished(device, result) for result in (make_result(), make_result_that_does_not_fit())]
    chromium.set_width(390)
    widths = {}
    for address in ("/", "/runs/", *(run.get_absolute_url() for run in (*ended, make_claimed_run(device)))):
        chromium.open(site + address)
        widths[address] = chromium.evaluate("document.documentElement.scrollWidth")
    assert [address for address, width in widths.items() if width > 390] == []
    assert chromium.errors == []


def test_what_can_be_tapped_is_large_enough(chromium: Chromium, site: str) -> None:
    run = finished(make_device(), make_result())
    chromium.set_width(390)
    small = (
        "[...document.querySelectorAll('button, select, .button, summary, nav a, input:not([type=checkbox])')]"
        ".filter(e => e.offsetParent && e.getBoundingClientRect().height < 44).map(e => e.outerHTML.slice(0, 80))"
    )
    for address in ("/", run.get_absolute_url()):
        chromium.open(site + address)
        assert chromium.evaluate(small) == []
