"""The badge of a run: what it says, that it is wide enough, and that it can be read."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from django.template.loader import render_to_string

from analysis.models import Device, Run
from analysis.presentation.badge import badge, text_pixels
from analysis.presentation.kinds import presentation as badges
from engine.text.units import GIB


def run_of(**columns: Any) -> Run:
    card = Device(kind="cuda", name="NVIDIA A100-SXM4-80GB", capacity_bytes=85_095_874_560)
    defaults = {"model": "bert", "device": card, "spec": {}, "largest_batch_size": 528, "certified": True}
    return Run(**{**defaults, **columns})


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({}, "bert · A100 80 GB · batch 528 certified"),
        ({"certified": False}, "bert · A100 80 GB · batch 528 not certified"),
        ({"boundary_reason": "does_not_fit", "largest_batch_size": 0}, "bert · A100 80 GB · does not fit"),
        ({"largest_batch_size": None, "certified": False}, "bert · A100 80 GB · not measured to the end"),
        (
            {"kind": "estimate", "gpu": "a100-80gb", "estimated_safe_batch_size": 500, "device": None},
            "bert · A100 80 GB · batch 500 estimate",
        ),
        ({"spec": {"memory_limit_bytes": 24 * GIB}}, "bert · A100 80 GB limited to 24 GiB · batch 528 certified"),
        (
            {"device": Device(kind="cuda", name="Unheard-of 9", capacity_bytes=30 * GIB)},
            "bert · Unheard-of 9 30 GiB · batch 528 certified",
        ),
    ],
)
def test_it_says_model_card_size_and_how_that_is_known(columns, text):
    assert badge(run_of(**columns)).text == text


def test_its_picture_is_valid_and_has_a_title_for_screen_readers():
    shown = badge(run_of(model="<b>"))
    svg = ET.fromstring(render_to_string("analysis/svg/badge.svg", {"badge": shown}))
    title = svg.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == title.text == f"MemoryMark: {shown.text}"
    assert int(svg.get("width", 0)) == shown.width > text_pixels(shown.text) + text_pixels(shown.label)


def test_the_widths_are_those_of_the_letters():
    # DejaVu Sans at 11 px: 10 M are 94.9 px, 10 i are 30.6
    assert 94 <= text_pixels("M" * 10) <= 98
    assert 30 <= text_pixels("i" * 10) <= 33
    assert text_pixels("漢" * 10) == 110


@pytest.mark.parametrize("colour", [badges.CERTIFIED, badges.NOT_CERTIFIED, badges.DOES_NOT_FIT, badges.ESTIMATED])
def test_white_text_can_be_read_on_every_colour(colour):
    def linear(part: str) -> float:
        value = int(part, 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(colour[at : at + 2]) for at in (1, 3, 5))
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("is_trusted", "ends"), [(False, "certified · reported, not trusted by this lab"), (True, "certified")]
)
def test_a_reported_run_that_is_not_trusted_says_so_and_is_not_green(is_trusted, ends):
    shown = badge(run_of(reported_from="node7", is_trusted=is_trusted))
    assert shown.text.endswith(ends)
    assert "node7" not in shown.text
    assert (shown.colour == badges.CERTIFIED) is is_trusted
