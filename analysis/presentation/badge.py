"""A run's result in one line, as a badge for README files: an SVG without scripts, styles or fonts to load.

The width follows from the text, by the widths of the letters of DejaVu Sans, which are those of Verdana. `textLength`
in the template makes other fonts fit the same room.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from analysis.charts.labels import text_width
from analysis.models import Run
from analysis.presentation.kinds import presentation_of
from analysis.presentation.kinds.presentation import CERTIFIED, NOT_CERTIFIED
from analysis.presentation.labels import describe_limit, limit_of_run, model_name
from analysis.presentation.origin import NOT_VERIFIED
from engine.settings.catalog import WORKLOADS

LABEL = "MemoryMark"
_FONT_PIXELS = 11
_PADDING_PIXELS = 6
_FORM_FACTORS = re.compile(r" (?:SXM\d?|PCIe|NVL)\b")


@dataclass(frozen=True, slots=True)
class Badge:
    text: str
    colour: str
    label: str = LABEL

    @property
    def label_pixels(self) -> int:
        return text_pixels(self.label)

    @property
    def text_pixels(self) -> int:
        return text_pixels(self.text)

    @property
    def split(self) -> int:
        return self.label_pixels + 2 * _PADDING_PIXELS

    @property
    def width(self) -> int:
        return self.split + self.text_pixels + 2 * _PADDING_PIXELS


def badge(run: Run) -> Badge:
    """Write "bert · A100 80 GB · batch 528 certified" of a finished measurement or estimate, and choose its colour."""
    kind = presentation_of(run)
    card = _FORM_FACTORS.sub("", kind.card(run))
    claim, colour = kind.badge_claim(run)
    model = run.model if run.model in WORKLOADS else model_name(run.model)
    parts = [model, " ".join(filter(None, [card, describe_limit(limit_of_run(run))])), claim]
    if not run.is_trusted:
        parts.append(NOT_VERIFIED)
        colour = NOT_CERTIFIED if colour == CERTIFIED else colour  # only results that this portal trusts are green
    return Badge(" · ".join(parts), colour)


def text_pixels(text: str) -> int:
    return math.ceil(text_width(text, _FONT_PIXELS))
