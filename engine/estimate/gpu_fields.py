"""PURE: the fields of one card in a catalogue file, and what each may hold. A mistake names the card and the field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

from ..errors import SpecError
from ..settings.step_settings import PRECISIONS
from ..text.from_json import from_json
from ..text.units import GIB, TIB

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)


def checked_card(gpu_id: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Check every value in the table of one card. Raises SpecError naming card and field."""
    if not _ID.fullmatch(gpu_id):
        raise SpecError(gpu_id[:80], "is no id for a GPU: small letters, digits and dashes, 40 at most")
    fields = _fields()
    for key in table:
        if key not in fields:
            raise SpecError(f"{gpu_id}.{key[:80]}", f"unknown field; there are {', '.join(fields)}")
    optional = _OPTIONAL | ({"compute_capability"} if table.get("vendor") == "amd" else set())
    for key in fields:
        if key not in table and key not in optional:
            raise SpecError(f"{gpu_id}.{key}", "is missing")
    if "price_per_hour_usd" in table and not {"price_source", "price_date"} <= set(table):
        raise SpecError(f"{gpu_id}.price_per_hour_usd", "needs its price_source and price_date")
    checked = {}
    for key, value in table.items():
        try:
            checked[key] = from_json(fields[key], value)
        except ValueError as exc:
            raise SpecError(f"{gpu_id}.{key}", str(exc)) from exc
    return checked


@cache
def _fields() -> dict[str, Any]:
    """Return the type of each field, with its bounds."""
    from msgspec import Meta  # here: `python -m engine --help` need not wait for it

    text = Annotated[str, Meta(min_length=1, max_length=200)]
    precision = Annotated[str, Meta(pattern=f"^({'|'.join(PRECISIONS)})$")]
    rate = Annotated[float, Meta(ge=0.1, le=1e5)]
    return {
        "name": text,
        "vendor": Literal["nvidia", "amd"],
        "torch_names": tuple[text, ...],
        "total_bytes": Annotated[int, Meta(ge=GIB, le=TIB)],
        "is_total_exact": bool,
        "total_source": text,
        "compute_capability": Annotated[str, Meta(pattern=r"^[0-9]{1,2}\.[0-9]$")],
        "multiprocessors": Annotated[int, Meta(ge=1, le=1000)],
        "context_mib": Annotated[int, Meta(ge=1, le=8192)],
        "dense_tflops": dict[precision, rate],
        "memory_bandwidth_gb_per_second": Annotated[float, Meta(ge=1, le=1e5)],
        "price_per_hour_usd": Annotated[float, Meta(ge=0, le=1e5)],
        "price_source": text,
        "price_date": date,
    }


_OPTIONAL = {"multiprocessors", "price_per_hour_usd", "price_source", "price_date"}
