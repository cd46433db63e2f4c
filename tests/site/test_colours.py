"""The colours of static/css/tokens.css: text is readable on each surface it stands on, dark, light and on paper."""

import re
from itertools import product
from pathlib import Path

import pytest
from django.conf import settings

CSS = Path(settings.BASE_DIR) / "static" / "css"
SURFACES = ("page", "card", "raised", "well")
TEXTS = ("text", "dim", "code", "go", "bad-text", "warn", "info")
SHAPES = (
    *("go", "bad", "neutral", "line-strong", *(f"series-{number}" for number in range(8))),
    *(f"kind-{kind}" for kind in ("parameters", "gradients", "activations", "other")),
)
"""Lines of charts, and parts of bars: they need less contrast than text."""


def schemes() -> dict[str, dict[str, str]]:
    """The tokens of each scheme: what paper does not set, it has from the light one."""
    screen, paper = (CSS / "tokens.css").read_text().split("@media print")
    plain, pairs = tokens(screen), re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", screen)
    light = plain | {name: colour for name, colour, _ in pairs}
    return {"dark": plain | {name: colour for name, _, colour in pairs}, "light": light, "paper": light | tokens(paper)}


def tokens(text: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text))


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour by WCAG 2.1, 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def too_weak(known: dict[str, str], pairs: list[tuple[str, str]], least: float) -> dict[tuple[str, str], float]:
    found = {(front, back): round(contrast(known[front], known[back]), 2) for front, back in pairs}
    return {pair: value for pair, value in found.items() if value < least}


@pytest.mark.parametrize("scheme", ["dark", "light", "paper"])
def test_text_has_a_contrast_of_four_and_a_half(scheme: str) -> None:
    pairs = [
        *product(TEXTS, SURFACES),
        ("on-go", "go"),
        ("on-go", "bad"),
        ("on-go", "neutral"),
        ("on-danger", "danger"),
    ]
    assert too_weak(schemes()[scheme], pairs, 4.5) == {}


@pytest.mark.parametrize("scheme", ["dark", "light", "paper"])
def test_lines_of_charts_and_parts_of_bars_have_a_contrast_of_three(scheme: str) -> None:
    assert too_weak(schemes()[scheme], list(product(SHAPES, ("card", "well"))), 3) == {}


def test_no_other_style_sheet_has_colours_of_its_own() -> None:
    found = {
        path.name: re.findall(r"#[0-9a-fA-F]{6}(?:[0-9a-fA-F]{2})?\b", path.read_text())
        for path in CSS.glob("*.css")
        if path.name != "tokens.css"
    }
    assert {name: colours for name, colours in found.items() if colours} == {}
