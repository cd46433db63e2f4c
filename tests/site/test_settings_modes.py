"""What the environment may say, and the settings as a fresh process reads them."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from engine import __version__
from engine.cli.main import main
from memorymark_site.env import (
    env_bool,
    env_command,
    env_list,
    env_networks,
    env_number,
    env_path,
    env_text,
    stored_secret,
    writable_file,
    writable_folder,
)

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


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), (" on ", True), ("0", False), ("", False)])
def test_a_switch_is_read(text, value):
    assert env_bool("X", environ={"X": text}) is value


def test_a_switch_that_is_not_set_has_its_default():
    assert env_bool("X", True, environ={}) is True


@pytest.mark.parametrize("text", ["2", "maybe", "truee"])
def test_a_switch_that_is_neither_on_nor_off_is_refused(text):
    with pytest.raises(ImproperlyConfigured, match=f"X='{text}'"):
        env_bool("X", environ={"X": text})


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("", 3.0), ("  2 ", 2.0)])
def test_a_number_is_read(text, value):
    assert env_number("X", 3.0, minimum=0, maximum=9, environ={"X": text}) == value


@pytest.mark.parametrize("text", ["ten", "-1", "10", "nan", "inf", "1e9"])
def test_a_number_that_is_none_or_out_of_range_is_refused(text):
    with pytest.raises(ImproperlyConfigured, match=f"X='{text}'"):
        env_number("X", 3.0, minimum=0, maximum=9, environ={"X": text})


def test_a_list_drops_blanks():
    assert env_list("X", environ={"X": " a, ,b,"}) == ["a", "b"]


def test_a_star_in_a_list_is_refused():
    with pytest.raises(ImproperlyConfigured, match="name each one"):
        env_list("X", environ={"X": "a,*"})


def test_networks_are_read():
    assert list(map(str, env_networks("X", environ={"X": "127.0.0.1, fd00::/8"}))) == ["127.0.0.1/32", "fd00::/8"]


@pytest.mark.parametrize("text", ["proxy", "10.1.2.3/16", "10.0.0.0/33"])
def test_what_is_no_network_is_refused(text):
    with pytest.raises(ImproperlyConfigured, match=f"X: '?{text}"):
        env_networks("X", environ={"X": text})


def test_a_text_is_stripped():
    assert env_text("X", environ={"X": " a b "}) == "a b"


def test_a_relative_path_is_refused():
    with pytest.raises(ImproperlyConfigured, match="absolute"):
        env_path("X", Path("/default"), environ={"X": "var"})


def test_an_absolute_path_is_read():
    assert env_path("X", Path("/default"), environ={"X": "/data"}) == Path("/data")


def test_a_secret_is_made_once_and_kept_to_its_owner(tmp_path):
    path = tmp_path / "new" / "secret_key"
    first = stored_secret(path)
    assert stored_secret(path) == first
    assert len(first) > 50
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]


def test_processes_that_start_together_share_one_secret(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(stored_secret, [tmp_path / "secret_key"] * 8))) == 1


@pytest.mark.parametrize(
    ("text", "expected"), [("", ["a", "b"]), ("py -m engine", ["py", "-m", "engine"]), ("'my py' x", ["my py", "x"])]
)
def test_a_command_is_split_as_a_shell_would(text, expected):
    assert env_command("X", ("a", "b"), environ={"X": text}) == expected


def test_a_command_with_an_open_quote_is_refused_by_name():
    with pytest.raises(ImproperlyConfigured, match="X: not a command line"):
        env_command("X", (), environ={"X": "'python -m engine"})


def test_a_read_only_folder_is_refused_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # whoever is root may write anywhere but there
    with pytest.raises(ImproperlyConfigured, match="cannot be written .*; set THIS"):
        writable_folder(tmp_path, remedy="set THIS")


def test_a_read_only_database_is_refused_with_the_remedy(tmp_path, monkeypatch):
    path = tmp_path / "memorymark.sqlite3"
    path.touch()
    monkeypatch.setattr("os.access", lambda asked, mode: asked != path)
    with pytest.raises(ImproperlyConfigured, match="database cannot be written .*; set THIS"):
        writable_file(path, remedy="set THIS")


def test_a_database_in_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(ImproperlyConfigured, match="folder is missing"):
        writable_file(tmp_path / "none" / "db.sqlite3", remedy="set THIS")


def test_a_database_that_is_yet_to_be_made_is_fine(tmp_path):
    assert writable_file(str(tmp_path / "db.sqlite3"), remedy="set THIS") is None
