"""A run's result in one line, as a badge for README files: an SVG without scripts, styles or fonts to load.

The width follows from the text, by the widths of the letters of DejaVu Sans, which are those of Verdana. `textLength`
in the template makes other fonts fit the same room.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analysis.models import Device, Run
from analysis.presentation.formatting import round_bytes
from analysis.presentation.labels import describe_limit, limit_of_run, model_name, short_device_name
from analysis.presentation.origin import NOT_VERIFIED
from analysis.runs.gpu_catalog import gpu_name, gpu_of
from engine.catalog import WORKLOADS
from engine.result import Reason

LABEL = "MemoryMark"
_FONT_PIXELS = 11
_PADDING_PIXELS = 6
_FORM_FACTORS = re.compile(r" (?:SXM\d?|PCIe|NVL)\b")

# in hundredths of the size of the font
_WIDTHS = {
    29: "'ijlIJ",
    32: " ,.·",
    36: "f/:;\\|-",
    41: "()[]t!r",
    53: '"*_`sz?',
    59: "cLFkvxy",
    62: "PTYaoe",
    64: "ESbdghnpqu$0123456789{}",
    70: "KAVBRXZC",
    78: "UHNDG&",
    82: "OQw",
    86: "#+<=>^~M",
    100: "%mW@",
}
_WIDTH_OF = {letter: width for width, letters in _WIDTHS.items() for letter in letters}
_WIDEST = max(_WIDTHS)
"""Of a letter that is not in the table: rather too much room than too little."""


@dataclass(frozen=True, slots=True)
class Badge:
    """The text of a badge, its colour, and where its two halves stand."""

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
        """Where the left half ends."""
        return self.label_pixels + 2 * _PADDING_PIXELS

    @property
    def width(self) -> int:
        return self.split + self.text_pixels + 2 * _PADDING_PIXELS

    @property
    def label_middle(self) -> float:
        return self.split / 2

    @property
    def text_middle(self) -> float:
        return (self.split + self.width) / 2


# white text has a contrast of at least 4.5 on each of them, a test says
CERTIFIED, NOT_CERTIFIED, DOES_NOT_FIT, ESTIMATED = "#0a6b3c", "#8a5a00", "#b3261e", "#1f5f8b"


def badge(run: Run) -> Badge:
    """Write "bert · A100 80 GB · batch 528 certified" of a finished measurement or estimate, and choose its colour."""
    what, colour = _estimated(run) if run.is_estimate else _measured(run)
    parts = [_model(run.model), _card(run), what]
    if run.is_reported and not run.is_trusted:
        parts.append(NOT_VERIFIED)
        colour = NOT_CERTIFIED if colour == CERTIFIED else colour  # green is for what this lab stands for
    return Badge(" · ".join(parts), colour)


def text_pixels(text: str) -> int:
    """Return the width of a text in whole pixels, rounded up."""
    return -(-sum(_WIDTH_OF.get(letter, _WIDEST) for letter in text) * _FONT_PIXELS // 100)


def _measured(run: Run) -> tuple[str, str]:
    if run.boundary_reason == Reason.DOES_NOT_FIT:
        return "does not fit", DOES_NOT_FIT
    if not run.largest_batch_size:
        return "not measured to the end", NOT_CERTIFIED
    size = f"batch {run.largest_batch_size}"
    return (f"{size} certified", CERTIFIED) if run.certified else (f"{size} not certified", NOT_CERTIFIED)


def _estimated(run: Run) -> tuple[str, str]:
    size = run.estimated_safe_batch_size
    return (f"batch {size} estimate" if size else "does not fit, estimate"), ESTIMATED


def _model(model: str) -> str:
    return model if model in WORKLOADS else model_name(model)


def _card(run: Run) -> str:
    """Write "A100 80 GB" as the vendor does, or the name and the memory of a card that is not in the catalogue."""
    limit = describe_limit(limit_of_run(run))
    if run.is_estimate:
        return " ".join(filter(None, [_short(gpu_name(run.gpu)), limit]))
    device = run.device or Device(name=run.device_name, capacity_bytes=run.capacity_bytes or 0)
    known = gpu_of(device)
    if known is not None:
        name = _short(known.name)
    elif device.kind == "cpu":
        name = "CPU"
    else:
        name = f"{_short(device.name)} {round_bytes(device.capacity_bytes)}"
    return " ".join(filter(None, [name, limit]))


def _short(name: str) -> str:
    return _FORM_FACTORS.sub("", short_device_name(name))
