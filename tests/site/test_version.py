"""One version, from one place: what a user sees anywhere is `engine.__version__`."""

import re

import pytest
from django.conf import settings
from django.test import Client

from engine import __version__
from engine.cli.main import main


def test_the_changelog_begins_with_this_version() -> None:
    text = (settings.BASE_DIR / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\S+)", text, re.MULTILINE)[1] == __version__


def test_the_command_line_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"MemoryMark {__version__}\n"


@pytest.mark.django_db
def test_health_api_and_pages_tell_the_same_version(alice_client: Client) -> None:
    assert alice_client.get("/health").json()["version"] == __version__
    assert alice_client.get("/api/v1/").json()["software_version"] == __version__
    page = alice_client.get("/", headers={"accept": "text/html"}).content.decode()
    assert f"MemoryMark {__version__}</span>" in page
