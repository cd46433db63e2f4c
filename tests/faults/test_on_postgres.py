"""The spine of these tests again on a real PostgreSQL, whose connections all break in an outage."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
SELECTED = "outage_in_mid_run or full_disk or should_have_heard or thaws or set_back or part_killed or random_kills"


def test_faults_are_survived_there_as_on_sqlite(run_on_postgres):
    done = run_on_postgres(str(Path(__file__).parent), "-k", SELECTED, timeout_seconds=1800)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
