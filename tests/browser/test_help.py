"""The documents in a browser: on a phone nothing is wider than the page, and a table scrolls in itself."""

import pytest

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
