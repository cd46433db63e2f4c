"""A database that can go away, and a fleet on it; everything a test started is dead when it ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet, is_sqlite
from tests.faults.outage import Database, PostgresDatabase, SqliteDatabase


@pytest.fixture
def database(transactional_db: None) -> Iterator[Database]:
    found = SqliteDatabase() if is_sqlite() else PostgresDatabase()
    yield found
    found.close()


@pytest.fixture
def fleet(database: Database, tmp_path: Path, settings) -> Iterator[Fleet]:
    settings.LOCK_DIR = tmp_path / "fleet" / "locks"
    (tmp_path / "fleet").mkdir()
    made = Fleet(tmp_path / "fleet", database.url)
    try:
        yield made
        assert made.overlaps() == ""  # never two engines on one card
    finally:
        made.end()
