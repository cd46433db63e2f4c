"""The charts' script: values by pointer, tap and keyboard, files; and the same pictures where it does not run."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Locator, expect

from analysis.models import Run
from engine.facts.result import Outcome, Waste
from engine.text.units import GIB
from tests.browser.chromium import Visitor
from tests.browser.conftest import Visit
from tests.factories import make_probe, make_refusal, make_spec
from tests.factories.results import finished, result

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 421)
LIMIT = 40 * GIB

MEET = """svg => {
  const shown = [...svg.querySelectorAll("text")].filter(text => text.checkVisibility());
  const boxes = shown.map(text => [text.textContent, text.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], index) => boxes.slice(index + 1).filter(([, b]) =>
    a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom
  ).map(([other]) => [one, other]));
}"""
"""Pairs of texts that overlap as this browser's font prints them; a text's box is taller than its letters."""


@pytest.fixture
def run(transactional_db: None) -> Run:
    return measured()


def measured(**spec: Any) -> Run:
    """A run with eleven sizes that fit and one that does not."""
    probes = [
        make_probe(size, peak_allocated_bytes=2 * GIB + size * GIB // 12, samples_per_second=900 * size / (size + 20))
        for size in SIZES
    ]
    plain = result(8)
    waste = Waste(LIMIT, 30 * GIB, 0.75, GIB, 0.02)
    answer = replace(plain, probes=(*probes, make_refusal(422)), waste=waste, spec=make_spec(current_batch_size=4))
    assert all(probe.outcome is Outcome.FITS for probe in probes)
    return finished(answer, **spec)


def curves_of(run: Run) -> str:
    return f"{run.get_absolute_url()}#curves"


def memory(visitor: Visitor) -> Locator:
    return visitor.page.locator('[data-chart="memory"]')


def value(visitor: Visitor) -> Locator:
    return memory(visitor).locator("output")


def test_the_point_under_the_pointer_says_its_value(window: Visitor, run: Run) -> None:
    window.open(curves_of(run))
    memory(window).locator(".curve .dot").nth(4).hover()
    expect(value(window)).to_have_text("batch 16: 3.3 GiB")
    window.page.mouse.move(0, 0)
    expect(value(window)).to_be_empty()
    assert (window.errors, window.foreign_requests) == ([], [])


def test_a_tap_says_the_value_on_a_phone(visit: Visit, live_server: Any, alice: User, run: Run) -> None:
    phone = visit(live_server.url, alice, 390, has_touch=True)
    phone.open(curves_of(run))
    memory(phone).locator(".curve .dot").nth(8).tap()
    expect(value(phone)).to_have_text("batch 256: 23.3 GiB")
    box, picture = value(phone).bounding_box(), memory(phone).locator(".picture").bounding_box()
    assert box is not None
    assert picture is not None
    assert picture["x"] <= box["x"]
    assert box["x"] + box["width"] <= picture["x"] + picture["width"] + 1


def test_the_arrow_keys_go_from_point_to_point_and_a_live_region_reads_them(window: Visitor, run: Run) -> None:
    window.open(curves_of(run))
    memory(window).locator(".picture").focus()
    expect(value(window)).to_have_text("batch 1: 2.1 GiB")
    window.page.keyboard.press("ArrowRight")
    expect(value(window)).to_have_text("batch 2: 2.2 GiB")
    window.page.keyboard.press("End")
    expect(memory(window).get_by_role("status")).to_have_text("batch 422: out of memory")
    window.page.keyboard.press("Escape")
    expect(value(window)).to_be_empty()
    assert window.broken_rules() == []


def test_the_picture_is_saved_as_png_and_on_a_comparison_as_svg(window: Visitor, run: Run) -> None:
    window.open(f"/compare/?ids={run.pk},{measured(optimizer='sgd').pk}")
    for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with window.page.expect_download() as download:
            memory(window).get_by_role("button", name=f"Download as {kind}").click()
        assert download.value.suggested_filename == f"memorymark-compare-memory.{kind.lower()}"
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(begins)
    root = ElementTree.fromstring(content)
    dots = [dot for dot in root.iter() if dot.get("class") == "dot"]
    assert len(dots) == 2 * len(SIZES)
    assert {dot.get("fill", "")[:4] for dot in dots} == {"rgb("}
    assert window.errors == []


@pytest.mark.parametrize("width", [1280, 390])
def test_no_texts_meet_as_the_browser_prints_them(
    visit: Visit, live_server: Any, alice: User, run: Run, width: int
) -> None:
    visitor = visit(live_server.url, alice, width)
    found = []
    for address in (curves_of(run), f"/compare/?ids={run.pk},{measured(optimizer='sgd').pk}"):
        visitor.open(address)
        for picture in visitor.page.locator("svg.curve:visible").all():
            found += picture.evaluate(MEET)
    assert found == []


def test_without_the_script_the_pictures_stay_and_each_point_has_its_title(
    visit: Visit, live_server: Any, alice: User, run: Run
) -> None:
    plain = visit(live_server.url, alice, java_script_enabled=False)
    plain.open(curves_of(run))
    expect(memory(plain).locator(".curve")).to_be_visible()
    assert memory(plain).locator(".curve .dot title").first.text_content() == "batch 1: 2.1 GiB"
    expect(memory(plain).get_by_role("link", name="Download as SVG")).to_be_visible()
    expect(memory(plain).locator("output")).to_have_count(0)
