"""The locks hold a version of each requirement that it allows; `scripts/lock` makes them anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NOT_LOCKED = {"torch", "torchvision"}


def required(name: str) -> Iterator[Requirement]:
    """What a file of requirements, or a lock, says, with those that it includes."""
    for line in (ROOT / name).read_text().splitlines():
        said = line.partition(" #")[0].rstrip("\\ ")
        if said.startswith("-r "):
            yield from required(said[3:])
        elif said and not said.startswith(("#", " ")):
            yield Requirement(said)


@pytest.mark.parametrize(
    ("requirements", "lock"),
    [("requirements-postgresql.txt", "requirements.lock"), ("requirements-dev.txt", "requirements-dev.lock")],
)
def test_no_lock_is_stale(requirements: str, lock: str) -> None:
    locked: dict[str, list[str]] = {}
    for each in required(lock):
        locked.setdefault(each.name, []).extend(pin.version for pin in each.specifier)
    stale = {
        str(each)
        for each in required(requirements)
        if each.name not in NOT_LOCKED
        if not any(map(each.specifier.contains, locked.get(canonicalize_name(each.name), [])))
    }
    assert stale == set(), "run scripts/lock"
