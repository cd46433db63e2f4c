"""`python -m engine gpus [--json]`: the cards that can be estimated.

A memory marked with ~ is nominal: no figure of a real card was found. Prices are offers of the date in the
catalogue, and missing where none was found.
"""

from __future__ import annotations

import json
import sys

from ..errors import EngineError, SpecError
from ..estimate.gpus import Gpu, gpus
from ..units import GIB

_HEADINGS = ("id", "name", "memory", "capability", "USD/h")


def main(arguments: list[str]) -> int:
    """Print the catalogue; the exit status."""
    try:
        if arguments not in ([], ["--json"]):
            raise SpecError("gpus", "takes --json and nothing else")
        cards = list(gpus().values())
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    sys.stdout.write(_as_json(cards) if arguments else _as_table(cards))
    return 0


def _as_json(cards: list[Gpu]) -> str:
    return json.dumps([card.to_dict() for card in cards]) + "\n"


def _as_table(cards: list[Gpu]) -> str:
    rows = [_HEADINGS, *map(_row, cards)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return (
        "\n".join(lines)
        + "\n\n~ nominal memory; the figure that torch reports for your card may differ by some per cent\n"
    )


def _row(card: Gpu) -> tuple[str, ...]:
    memory = f"{'' if card.is_total_exact else '~'}{card.total_bytes / GIB:.2f} GiB"
    capability = card.compute_capability
    price = card.price_per_hour_usd
    return (
        card.id,
        card.name,
        memory.rjust(11),
        "-" if capability is None else f"{capability[0]}.{capability[1]}",
        "-" if price is None else f"{price:.2f}",
    )
