"""Sizes in bytes as text. Inside the engine all sizes are integers in bytes."""

from __future__ import annotations

import re

KIB, MIB, GIB, TIB = 1024, 1024**2, 1024**3, 1024**4
_FACTORS = {"": 1, "B": 1, "KIB": KIB, "MIB": MIB, "GIB": GIB, "TIB": TIB}
_FACTORS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_PATTERN = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([A-Za-z]{0,3})\s*", re.ASCII)
BYTES_ALLOWED = "a size such as 24GiB, 512MiB, 24GB (10^9) or a whole number of bytes"


def parse_bytes(text: str) -> int:
    """``"24GiB"`` -> 25769803776. Binary units (GiB) and decimal ones (GB) are distinguished.

    Raises ValueError when the text is not a positive size.
    """
    match = _PATTERN.fullmatch(text)
    factor = _FACTORS.get(match[2].upper()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a size; give {BYTES_ALLOWED}")
    size = int(float(match[1]) * factor) if "." in match[1] else int(match[1]) * factor
    if size <= 0:
        raise ValueError(f"{text!r} is not a size above zero; give {BYTES_ALLOWED}")
    return size


def format_bytes(size: float) -> str:
    """Write a size in the largest binary unit that keeps the figure above one, with one decimal: ``1.5 GiB``."""
    for name, factor in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(size) >= factor:
            return f"{size / factor:.1f} {name}"
    return f"{size:.0f} B"
