"""Files of the repository: the locks, a changelog that is short enough to be read, the README's pictures."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.screenshots import HEIGHTS, IMAGES, README, with_caption

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


TEXT = (settings.BASE_DIR / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASES = TEXT.split("\n## ")[1:]


def entries(release: str) -> list[str]:
    return [line.removeprefix("- ") for line in release.splitlines() if line.startswith("- ")]


def test_the_changelog_has_at_most_1500_words() -> None:
    assert len(TEXT.split()) <= 1_500


def test_a_release_has_at_most_forty_entries_of_one_line_and_25_words() -> None:
    assert [(release[:5], len(entries(release))) for release in RELEASES if len(entries(release)) > 40] == []
    assert [entry for release in RELEASES for entry in entries(release) if len(entry.split()) > 25] == []
    assert re.findall(r"^[ \t*+].*", TEXT, re.MULTILINE) == []


def test_entries_stand_in_four_groups_in_their_order() -> None:
    order = ["Added", "Changed", "Fixed", "Removed"]
    for release in RELEASES:
        found = re.findall(r"^###+ (.*)", release, re.MULTILINE)
        assert found == [group for group in order if group in found]
        assert entries(release.partition("\n### ")[0]) == []


def test_the_readme_shows_each_picture_once_and_the_folder_holds_no_other() -> None:
    for name in HEIGHTS:
        assert f"![A (1): text]({'docs/images'}/{name}.png)" in with_caption(README.read_text(), name, "A [1]: text")
    assert sorted(path.stem for path in IMAGES.iterdir()) == sorted(HEIGHTS)


def test_a_picture_that_the_readme_does_not_show_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times"):
        with_caption("no picture\n", "result", "x")
