"""PURE: checks the claims of a result document against its own probes.

Only the measurements of a document from another machine are trusted: spec, device, probes, rounds. Everything that
follows from them is decided again, by the code that decided it in the run, and must equal the claim. A weaker claim (no
speed-up, no certificate) is no contradiction; a stronger one is, and so are figures that no machine can have measured.
Invented measurements that are consistent cannot be detected.

- `document`: size, depth and types; a malformed document is a SpecError that names the field.
- `claims`: what a document claims, and the questions that `measurement` and `command` answer.
- `physics`: impossible probes: more memory than the device has, speeds that do not follow from their times.
- `boundary`, `speed`: decide the boundary and the comparison of speeds again.
- `training`: what a command consumed.
- `result`, `race`, `own_race`, `validation`: a whole document; `engine.kinds` says which.
"""

from __future__ import annotations

from .contradiction import Contradiction
from .document import FIRST_VERSION
from .parts import impossible_estimate
from .physics import impossible_facts

__all__ = ["FIRST_VERSION", "Contradiction", "impossible_estimate", "impossible_facts"]
