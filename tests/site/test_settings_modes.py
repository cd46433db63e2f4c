"""The settings as a fresh process reads them: production, PostgreSQL, nonsense, and what starting Django loads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

SECRET = "a-secret-that-is-long-enough-and-has-many-different-characters-0123456789"


def python(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
    return subprocess.run(
        [sys.executable, *arguments],
        env={**kept, "MEMORYMARK_DATA_DIR": str(folder), **environment},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_deployment_check_is_clean_in_production(tmp_path):
    check = ("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    given = {"MEMORYMARK_PRODUCTION": "1", "MEMORYMARK_TRUSTED_PROXIES": "1", "SECRET_KEY": SECRET}
    done = python(*check, folder=tmp_path, **given)
    assert (done.returncode, done.stdout) == (0, "System check identified no issues (0 silenced).\n"), done.stderr


def test_production_refuses_to_start_without_its_secret(tmp_path):
    done = python("manage.py", "check", folder=tmp_path, MEMORYMARK_PRODUCTION="1")
    assert done.returncode == 1
    assert "SECRET_KEY must be given" in done.stderr


def test_a_header_that_names_people_is_refused_where_no_proxy_is_named(tmp_path):
    done = python("manage.py", "check", folder=tmp_path, MEMORYMARK_REMOTE_USER_HEADER="X-Forwarded-User")
    assert done.returncode == 1
    assert "MEMORYMARK_REMOTE_USER_PROXIES must name the proxies" in done.stderr


def test_a_database_url_names_a_postgresql(tmp_path):
    show = "from memorymark_site import settings as s; d = s.DATABASES['default']; print(d['ENGINE'], d['NAME'])"
    done = python("-c", show, folder=tmp_path, DATABASE_URL="postgresql://u:p@db.example:5433/runs")
    assert done.stdout == "django.db.backends.postgresql runs\n", done.stderr


@pytest.mark.slow
def test_nothing_that_django_loads_imports_torch(tmp_path):
    """torch takes seconds and hundreds of megabytes per process; the engine's child alone pays that."""
    look = (
        "import sys, django; django.setup(); import memorymark_site.urls;"
        "import analysis.workers.worker, analysis.workers.tasks;"
        "from django.core.management import load_command_class as load;"
        "[load('analysis', name) for name in ('up', 'worker', 'analyze')];"
        "print([name for name in ('torch', 'transformers', 'torchvision', 'numpy') if name in sys.modules])"
    )
    done = python("-c", look, folder=tmp_path, DJANGO_SETTINGS_MODULE="memorymark_site.settings")
    assert done.stdout == "[]\n", done.stderr


def test_an_exception_in_a_view_is_printed_where_the_server_runs(tmp_path):
    code = (
        "import django, logging; django.setup(); "
        "logging.getLogger('django.request').error('Internal Server Error: /runs/', exc_info=ValueError('the cause'))"
    )
    done = python("-c", code, folder=tmp_path, DJANGO_SETTINGS_MODULE="memorymark_site.settings")
    assert "ValueError: the cause" in done.stderr


def test_a_data_folder_that_cannot_be_made_is_told_in_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    done = python("-c", "import memorymark_site.settings", folder=tmp_path / "file" / "var")
    assert done.stderr.splitlines()[-1].endswith("cannot create this folder (Not a directory); set MEMORYMARK_DATA_DIR")


def test_a_fleet_is_named_by_the_environment(tmp_path):
    show = (
        "from memorymark_site import settings as s; print(s.HOST_NAME, s.LOCK_DIR, *s.ENGINE_COMMAND, s.METRICS_TOKEN)"
    )
    given = {"HOST": "node7", "LOCK_DIR": "/run/locks", "ENGINE_COMMAND": "/opt/py -m engine", "METRICS_TOKEN": "t"}
    done = python("-c", show, folder=tmp_path, **{f"MEMORYMARK_{name}": value for name, value in given.items()})
    assert done.stdout == "node7 /run/locks /opt/py -m engine t\n", done.stderr


def test_an_outage_of_postgresql_shows_within_seconds_unless_the_url_says_otherwise(tmp_path):
    show = (
        "from memorymark_site import settings as s; o = s.DATABASES['default']['OPTIONS']; print(o['connect_timeout'])"
    )
    url = "postgresql://u:p@db.example/runs"
    assert python("-c", show, folder=tmp_path, DATABASE_URL=url).stdout == "5\n"
    assert python("-c", show, folder=tmp_path, DATABASE_URL=f"{url}?connect_timeout=30").stdout == "30\n"


def test_a_process_frozen_within_a_transaction_gives_its_postgresql_locks_back(tmp_path):
    show = "from memorymark_site import settings as s; print(s.DATABASES['default']['OPTIONS']['options'])"
    done = python("-c", show, folder=tmp_path, DATABASE_URL="postgresql://u:p@db.example/runs")
    assert done.stdout == "-c idle_in_transaction_session_timeout=20s\n"
