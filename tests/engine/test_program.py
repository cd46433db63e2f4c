"""By what name the engine is started, and what helps where that name may mean another program."""

from pathlib import Path

import pytest

from engine import program
from engine.program import IMPORTED_FROM, how_to_install


def test_a_checkout_is_imported_from_its_own_folder() -> None:
    assert Path(__file__).parents[2] == IMPORTED_FROM


def test_only_another_folder_than_the_checkouts_is_told_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert how_to_install(IMPORTED_FROM) is None
    assert f"`pip install -e {IMPORTED_FROM}` gives you the command `memorymark`" in (how_to_install(Path("/")) or "")
    monkeypatch.setattr(program, "PROGRAM", "memorymark")
    assert how_to_install(Path("/")) is None
