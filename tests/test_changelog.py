"""The changelog stays short enough to be read: few and short entries, in four groups a release."""

import re

from django.conf import settings

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
