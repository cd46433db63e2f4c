"""A database of the version before the migrations became two is upgraded without loss.

`tests/data/databases/e197c3f3.sqlite3.xz` was filled at that commit: runs of all kinds, and some of each state.
"""

import lzma
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EARLIER = ROOT / "tests" / "data" / "databases" / "e197c3f3.sqlite3.xz"
OPEN_ALL = """
import django
django.setup()
from django.contrib.auth.models import User
from django.test import Client
from analysis.models import Run
client = Client()
client.force_login(User.objects.get(username="manager"))
for run in Run.objects.all():
    for path, kind in ((f"/runs/{run.pk}/", "text/html"), (f"/api/v1/runs/{run.pk}/", "application/json")):
        opened = client.get(path, headers={"accept": kind}, SERVER_NAME="localhost")
        print(opened.status_code, run.kind, run.state)
"""


def rows(database: Path) -> dict[str, int]:
    with sqlite3.connect(database) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [name for name in tables if name.startswith(("analysis_", "auth_user"))]
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in kept}


@pytest.mark.slow
def test_each_row_is_there_and_each_page_opens(tmp_path: Path) -> None:
    database = tmp_path / "memorymark.sqlite3"
    database.write_bytes(lzma.decompress(EARLIER.read_bytes()))
    before = rows(database)
    environment = {
        **os.environ,
        **{"MEMORYMARK_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "memorymark_site.settings"},
    }
    environment.pop("DATABASE_URL", None)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("manage.py", "migrate")
    run("manage.py", "collectstatic", "--noinput", "-v", "0")
    assert rows(database) == before
    run("manage.py", "decide_again")
    opened = [line.split() for line in run("-c", OPEN_ALL).splitlines()]
    assert {status for status, _, _ in opened} == {"200"}
    kinds = {"measurement", "command", "estimate", "validation", "race", "own_race"}
    assert {kind for _, kind, _ in opened} == kinds
    assert {"queued", "running", "finished", "failed", "cancelled"} <= {state for _, _, state in opened}
