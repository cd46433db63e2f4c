"""The tests that write rows, again on a real PostgreSQL 18 that starts out of a wheel."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

FILES = (
    "runs/test_services.py",
    "runs/test_claim_race.py",
    "runs/test_claim.py",
    "runs/test_device_sets.py",
    "workers/test_device_lock.py",
    "workers/test_estimate_runs.py",
    "lists/test_run_filters.py",
    "runs/test_annotate.py",
    "pages/history/test_groups.py",
    "models/test_upgrade.py",
    "workers/test_recovery.py",
    "runs/test_scheduling.py",
    "workers/test_supervisor.py",
    "api/test_idempotency.py",
    "api/test_throttles.py",
    "api/test_reports_race.py",
    "api/test_reported_events.py",
    "runs/test_trust.py",
    "management/test_backup.py",
    "news/test_deliver.py",
    "news/test_decide.py",
)
AT_NIGHT = (
    "pages/estimates/test_question.py",
    "runs/test_estimates_left_out.py",
    "models/test_text.py",
    "api/test_reported_results.py",
    "api/test_reported_bounds.py",
    "pages/run/test_watch.py",
    "news/test_reported_runs.py",
    "news/test_pages.py",
    "security/test_forged_reports.py",
    "security/test_stored_commands.py",
    "security/test_reported_runs_are_marked.py",
)


@pytest.mark.parametrize("files", [FILES, AT_NIGHT], ids=["queue and lists", "reports"])
def test_rows_are_written_there_as_on_sqlite(files, run_on_postgres):
    here = Path(__file__).parent
    done = run_on_postgres(*[str(here / name) for name in files], timeout_seconds=1800)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert " skipped" not in done.stdout
