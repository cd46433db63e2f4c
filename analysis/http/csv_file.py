"""The one writer of CSV: no cell that it writes is a formula to a spreadsheet.

Names, notes, models and error texts are written by people and by reporting machines. A spreadsheet computes a cell that
begins with one of these characters, and such a formula can send its neighbours elsewhere.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # also those of full width, which some take


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Write rows as lines of CSV. Text that could be a formula gets a `'` in front; numbers stay as they are."""
    written = io.StringIO()
    csv.writer(written).writerows(
        [f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell for cell in row] for row in rows
    )
    return written.getvalue()
