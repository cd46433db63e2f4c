"""PURE: the fields of one card in a catalogue file, and what each may hold. A mistake names the card and the field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from ..errors import SpecError
from ..settings.step_settings import PRECISIONS
from ..text.units import GIB, TIB

VENDORS = ("nvidia", "amd")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}", re.ASCII)
_CAPABILITY = re.compile(r"(\d{1,2})\.(\d)", re.ASCII)


def checked_card(gpu_id: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Check every value in the table of one card. Raises SpecError naming card and field."""
    if not _ID.fullmatch(gpu_id):
        raise SpecError(gpu_id[:80], "is no id for a GPU: small letters, digits and dashes, 40 at most")
    for key in table:
        if key not in _CHECKS:
            raise SpecError(f"{gpu_id}.{key[:80]}", f"unknown field; there are {', '.join(_CHECKS)}")
    optional = _OPTIONAL | ({"compute_capability"} if table.get("vendor") == "amd" else set())
    for key in _CHECKS:
        if key not in table and key not in optional:
            raise SpecError(f"{gpu_id}.{key}", "is missing")
    if "price_per_hour_usd" in table and not {"price_source", "price_date"} <= set(table):
        raise SpecError(f"{gpu_id}.price_per_hour_usd", "needs its price_source and price_date")
    checked = {}
    for key, value in table.items():
        try:
            checked[key] = _CHECKS[key](value)
        except (TypeError, ValueError) as exc:
            raise SpecError(f"{gpu_id}.{key}", str(exc)) from exc
    return checked


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise ValueError("must be text of 1 to 200 characters")
    return value


def _vendor(value: Any) -> str:
    if value not in VENDORS:
        raise ValueError(f"must be one of {', '.join(VENDORS)}")
    return str(value)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ValueError("must be a list of names")
    return [_text(item) for item in value]


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low:,} to {high:,}")
        return value

    return check


def _number(low: float, high: float) -> Callable[[Any], float]:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}")
        return float(value)

    return check


def _capability(value: Any) -> tuple[int, int]:
    found = _CAPABILITY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('must be text such as "8.0"')
    return int(found[1]), int(found[2])


def _rates(value: Any) -> dict[str, float]:
    if not isinstance(value, dict) or not set(value) <= set(PRECISIONS):
        raise ValueError(f"must be a table of {', '.join(PRECISIONS)}")
    check = _number(0.1, 100_000)
    return {precision: check(rate) for precision, rate in value.items()}


def _date(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    return date.fromisoformat(_text(value)).isoformat()


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "name": _text,
    "vendor": _vendor,
    "torch_names": _texts,
    "total_bytes": _whole(GIB, TIB),
    "is_total_exact": _flag,
    "total_source": _text,
    "compute_capability": _capability,
    "multiprocessors": _whole(1, 1000),
    "context_mib": _whole(1, 8192),
    "dense_tflops": _rates,
    "memory_bandwidth_gb_per_second": _number(1, 100_000),
    "price_per_hour_usd": _number(0, 100_000),
    "price_source": _text,
    "price_date": _date,
}
_OPTIONAL = {"multiprocessors", "price_per_hour_usd", "price_source", "price_date"}
