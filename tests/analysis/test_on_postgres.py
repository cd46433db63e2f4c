"""The tests that write rows, again on a real PostgreSQL 18 that starts out of a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

FILES = (
    "test_services.py",
    "test_claim_race.py",
    "test_claiming.py",
    "estimates/test_estimate_runs.py",
    "estimates/test_estimates_graded.py",
    "estimates/test_estimates_left_out.py",
    "history/test_filters.py",
    "history/test_keeping.py",
    "history/test_pages_of_runs.py",
    "test_migrations.py",
    "test_placement.py",
    "test_recovery.py",
    "test_scheduling.py",
    "test_supervisor.py",
    "test_tasks.py",
    "../api/test_idempotency.py",
    "../api/test_throttles.py",
    "../retention/test_purge_race.py",
)


def test_rows_are_written_there_as_on_sqlite(run_on_postgres):
    here = Path(__file__).parent
    done = run_on_postgres(*[str(here / name) for name in FILES], timeout_seconds=240)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert " skipped" not in done.stdout
