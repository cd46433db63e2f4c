"""The first screen of every kind of result: the answer and its green button stand above the fold, at both widths."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from analysis.models import ALL_GPUS, Run, State
from engine.describe.result import WORDS_MOST
from tests.browser.chromium import PHONE, WIDE
from tests.browser.conftest import Visit
from tests.browser.test_every_page import make_estimated
from tests.factories import make_device, make_result_that_does_not_fit, make_run
from tests.factories.pages import finished
from tests.factories.reports import make_reported_run
from tests.factories.speeds import make_bound_result, make_result_out_of_time, make_unmeasurable_result

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.nightly, pytest.mark.django_db(transaction=True)]
HEIGHTS = {WIDE: 900, PHONE: 844}
RESULTS = (make_bound_result, make_unmeasurable_result, make_result_out_of_time, make_result_that_does_not_fit)


@pytest.fixture
def addresses(transactional_db: None) -> list[str]:
    device = make_device()
    runs = [finished(make(), device) for make in RESULTS]
    failed = make_run(device)
    Run.objects.filter(pk=failed.pk).update(state=State.FAILED, error_code="internal", error_message="It broke.")
    return [run.get_absolute_url() for run in (*runs, failed, make_estimated("a10"), make_estimated(ALL_GPUS))]


@pytest.mark.parametrize("width", HEIGHTS)
def test_the_answer_and_its_button_are_on_the_first_screen(
    visit: Visit, live_server: Any, alice: User, addresses: list[str], width: int
) -> None:
    window = visit(live_server.url, alice, width)
    window.resize(width, HEIGHTS[width])
    for address in addresses:
        window.open(address)
        heading, button = window.page.locator("h1"), window.page.locator("main .button-go").first
        assert len(heading.inner_text().split()) <= WORDS_MOST, address
        places = [each.bounding_box() for each in (heading, button)]
        ends = [place["y"] + place["height"] for place in places if place]
        assert len(ends) == 2, address
        assert max(ends) <= HEIGHTS[width], (address, ends)
        facts = window.page.locator("ul.facts").bounding_box()
        assert facts is not None
        assert ends[1] <= facts["y"], f"{address}: the facts stand before the button"


def test_the_chip_of_an_untrusted_report_takes_one_line(visit: Visit, live_server: Any, alice: User) -> None:
    run = make_reported_run(alice)
    Run.objects.filter(pk=run.pk).update(reported_from="a-node-with-quite-a-long-name.of-a-cluster.example.org")
    for width in HEIGHTS:
        window = visit(live_server.url, alice, width)
        window.open(run.get_absolute_url())
        place = window.page.locator(".chip-origin").first.bounding_box()
        assert place is not None
        assert place["height"] < 30
        assert window.width <= width


@pytest.mark.parametrize("gpu", ["a10", ALL_GPUS])
def test_an_estimate_takes_two_pages_of_paper(visit: Visit, live_server: Any, alice: User, gpu: str) -> None:
    window = visit(live_server.url, alice)
    window.open(make_estimated(gpu).get_absolute_url())
    pages = window.page.pdf(format="A4").count(b"/Type /Page\n")
    assert 1 <= pages <= 2
