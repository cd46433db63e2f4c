"""`python -m engine list models|gpus|devices`: what can be measured, estimated for, and measured on."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from ..estimate.gpus import Gpu, gpus
from ..program import PROGRAM
from ..settings.catalog import WORKLOADS
from ..settings.profiles import PROFILES
from ..text.printable import printable
from ..text.units import GIB, format_bytes
from .command import OUTPUT, Command, Offered, argument
from .options import json_option
from .printing.output import print_json
from .printing.terminal import say, table_lines, width_of, wrapped

LISTED = {
    "models": "Models that can be measured and estimated",
    "gpus": "GPUs that can be estimated for",
    "devices": "Devices of this machine that can be measured on",
    "profiles": "Settings of well-known libraries, for --like",
}
Listing = tuple[list[dict[str, Any]], list[str]]
"""What `--json` prints, and the lines for people."""


def _list(what: str, *, as_json: bool) -> int:
    documents, lines = _LISTS[what](width_of(sys.stdout))
    if as_json:
        print_json(documents)
    else:
        say("\n".join(lines))
    return 0


def _gpus(width: int | None) -> Listing:
    cards = list(gpus().values())
    table = table_lines(("id", "name", "memory", "USD/h"), map(_row, cards), width, right=(2, 3))
    note = "~ nominal memory; torch may report a few percent less or more"
    return [card.to_dict() for card in cards], [*table, "", note]


def _row(card: Gpu) -> tuple[str, ...]:
    memory = f"{'' if card.is_total_exact else '~'}{card.total_bytes / GIB:.2f} GiB"
    price = card.price_per_hour_usd
    return (card.id, card.name, memory, "-" if price is None else f"{price:.2f}")


def _models(width: int | None) -> Listing:
    documents = [
        {
            "id": each.id,
            "name": each.name,
            "task": each.task,
            "parameters": each.parameter_count,
            "description": each.description,
        }
        for each in WORKLOADS.values()
    ]
    rows = [(each.id, f"{each.parameter_count / 1e6:,.1f} M", each.task) for each in WORKLOADS.values()]
    return documents, table_lines(("id", "parameters", "task"), rows, width, right=(1,))


def _profiles(width: int | None) -> Listing:
    documents = [{"id": name, **asdict(each), "settings": dict(each.settings)} for name, each in PROFILES.items()]
    lines = [
        line
        for name, each in PROFILES.items()
        for line in (*wrapped([f"{name}: {each.label}"], width, hanging=""), *wrapped(_profile(name), width))
    ]
    return documents, lines


def _profile(name: str) -> list[str]:
    known = PROFILES[name]
    settings = [f"{setting} {_written(value)}" for setting, value in known.settings.items()]
    chunks = [f"loss in {known.loss_chunks} chunks"] if known.loss_chunks else []
    return [f"  {', '.join([*settings, *chunks])}", f"  {known.origin}", f"  {known.note}"]


def _written(value: object) -> str:
    return "yes" if value is True else str(value)


def _devices(width: int | None) -> Listing:
    from ..measurement import device  # imports torch

    listed = device.listed()
    rows = [(each.device, format_bytes(each.capacity_bytes), printable(each.name)) for each in listed]
    return [facts.to_dict() for facts in listed], table_lines(("device", "memory", "name"), rows, width, right=(1,))


_LISTS = {"models": _models, "gpus": _gpus, "devices": _devices, "profiles": _profiles}


def _short_form(what: str) -> Command:
    text = f"{LISTED[what]}.\n\nShort for `{PROGRAM} list {what}`."
    return Command(what, lambda options: _list(what, as_json=options.json), params=[json_option()], help=text)


LIST = Command(
    "list",
    lambda options: _list(options.what, as_json=options.json),
    params=[
        argument("what", required=True, type=Offered(list(LISTED)), panel=OUTPUT, help=", ".join(LISTED)),
        json_option(),
    ],
    help=f"""List the models, the GPUs, the devices of this machine or the profiles.

\b
{PROGRAM} list models
{PROGRAM} list gpus --json
""",
)
MODELS, GPUS, DEVICES = map(_short_form, ("models", "gpus", "devices"))
