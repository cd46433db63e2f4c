"""`python -m engine gpus [--json]`: the GPUs that can be estimated for.

A memory marked with ~ is nominal: no figure of a real GPU was found. Prices are offers of the date in the
catalogue, and missing where none was found.
"""

from __future__ import annotations

import sys

from ..estimate.gpus import Gpu, gpus
from ..text.units import GIB
from .printing.output import print_json
from .printing.terminal import say, table_lines, width_of

_HEADINGS = ("id", "name", "memory", "USD/h")


def list_gpus(*, as_json: bool) -> None:
    """Print the catalogue."""
    cards = gpus().values()
    if as_json:
        print_json([card.to_dict() for card in cards])
    else:
        say("\n".join(table_lines(_HEADINGS, map(_row, cards), width_of(sys.stdout), right=(2, 3))))
        say("\n~ nominal memory; torch may report a few percent less or more")


def _row(card: Gpu) -> tuple[str, ...]:
    memory = f"{'' if card.is_total_exact else '~'}{card.total_bytes / GIB:.2f} GiB"
    price = card.price_per_hour_usd
    return (
        card.id,
        card.name,
        memory,
        "-" if price is None else f"{price:.2f}",
    )
