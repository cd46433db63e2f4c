"""What a start did to files before all was undone, as its guardian told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ....errors import CommandUntunable
from ....text.printable import printable

CHANGES = "changes.json"
"""The file beside a start's notes in which its guardian tells."""
FILES_NAMED, MOST_FILES, MOST_PATH = 5, 200, 1_000
"""How many files a line names, how many a result, and how many characters of a path."""


class Way(StrEnum):
    """How files are kept as they are."""

    LAYERS = "layers"
    SAVING = "saving"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """What one start did to files before all was undone: pairs of `new`, `overwritten` or `removed` and a path."""

    files: tuple[tuple[str, str], ...] = ()
    refused: str = ""
    """The change for which the start was ended, as it could not have been undone."""
    left: tuple[str, ...] = ()
    """What could not be put back, in words."""
    protection: Way = Way.NOTHING

    @classmethod
    def read(cls, folder: Path) -> FileChanges:
        """Return what a guardian told; nothing where it was killed, or kept no files."""
        try:
            told = json.loads((folder / CHANGES).read_text())
        except FileNotFoundError:
            return cls()
        files = tuple((what, path) for what, path in told["files"])
        return cls(files, told["refused"], tuple(told["left"]), Way(told["protection"]))

    def check(self) -> None:
        """Raise CommandUntunable where the start was ended before a change."""
        if self.refused:
            raise CommandUntunable(
                "would_overwrite",
                f"{self.refused}. The start was ended before that: have the script write to {{out}}, a fresh folder of "
                "each start, or give --may-overwrite to allow it",
            )

    def describe(self, folder: str) -> str:
        changed = [f"{_relative(path, folder)} {what}" for what, path in self.files if what != "new"]
        if not changed:
            return ""
        more = f" and {len(changed) - FILES_NAMED} more" if len(changed) > FILES_NAMED else ""
        return f"undone, as after each start: {', '.join(changed[:FILES_NAMED])}{more}"

    def written(self, folder: str) -> tuple[str, ...]:
        return tuple(sorted(_relative(path, folder) for what, path in self.files if what != "removed"))


@dataclass
class WrittenFiles:
    """What the starts of a run wrote, from `folder`, before it was undone."""

    folder: str
    log: Callable[[str, str], None]
    protection: Way | None = None
    paths: set[str] = field(default_factory=set)
    is_said: bool = False
    """Whether a change of the user's own files was told: each start changes the same."""

    def take(self, changes: FileChanges) -> None:
        """Add the changes of one start, and log those that the user should know."""
        for each in changes.left:
            self.log(f"could not be put back: {each}", "warning")
        if not self.is_said and (text := changes.describe(self.folder)):
            self.log(text, "info")
            self.is_said = True
        self.paths.update(changes.written(self.folder))

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(sorted(self.paths)[:MOST_FILES])


def _relative(path: str, folder: str) -> str:
    shown = os.path.relpath(path, folder) if Path(path).is_relative_to(folder) else path
    return printable(shown, MOST_PATH) or "?"
