"""PURE: what the probes of a result document show, against what the document claims.

A document that was made elsewhere is believed in its measurements alone: spec, device, probes, rounds. Everything that
follows from them is decided once more, by the code that decided it in the run, and must come out as claimed. A claim of
less (no speed-up, no certificate) is no contradiction; one of more is, and so are figures that no machine can have
measured. It cannot tell whether measurements that fit together were made up.

- `document`: size, depth and types; a malformed document is a SpecError that names the field.
- `physics`: probes that cannot be: more memory than there is, speeds that are not those of their times.
- `boundary`, `speed`: the boundary and the comparison of speeds, decided again. `training`: what a command consumed.
- `result`, `validation`: a whole document of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .contradiction import Contradiction
from .document import FIRST_VERSION, check_limits
from .result import contradictions_of_result
from .validation import contradictions_of_validation

__all__ = ["FIRST_VERSION", "Contradiction", "find_contradictions"]


def find_contradictions(document: Mapping[str, Any]) -> list[Contradiction]:
    """List the fields in which a result claims more than its probes show. Raises SpecError for a malformed document.

    `document` is the JSON of a measurement, of a tuned command, or of a validation.
    """
    check_limits(document)
    if "checks" in document:
        return contradictions_of_validation(document)
    return contradictions_of_result(document)
