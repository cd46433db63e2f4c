"""PURE: works out the answer of a result document from the facts that it holds.

The facts of a document from another machine are trusted: spec, device, probes, rounds, how the run ended. Whatever
follows from them is worked out here, by the code that worked it out in the run, so a document cannot claim anything.
What no machine can have measured is refused. Invented measurements that are consistent cannot be detected.

- `document`: size, depth and types; a malformed document is a SpecError that names the field.
- `physics`, `parts`, `training`: figures that no machine can have measured.
- `size_facts`: the facts of a search, and the questions that `measurement` and `command` answer.
- `sizes`, `race`, `validation`, `watch`: the answer of a whole document; `engine.questions.kinds` says which.
"""

from __future__ import annotations

from .document import FIRST_VERSION
from .impossible import Impossible, ImpossibleFiguresError
from .parts import impossible_estimate
from .physics import impossible_facts

__all__ = ["FIRST_VERSION", "Impossible", "ImpossibleFiguresError", "impossible_estimate", "impossible_facts"]
