"""What an installation keeps is for its own user, and reaches neither git nor the image."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from memorymark_site.env import keep_private

ROOT = Path(settings.BASE_DIR)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
def test_a_database_made_by_our_commands_is_for_its_user_alone_whatever_the_umask_was(tmp_path):
    tmp_path.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v", "0"],
        env={**kept, "MEMORYMARK_DATA_DIR": str(tmp_path)},
        cwd=ROOT,
        check=True,
        umask=0o022,
    )
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert tmp_path / "memorymark.sqlite3" in files
    assert {path.name: oct(mode(path)) for path in files if mode(path) & 0o077} == {}


def test_a_database_that_everybody_could_read_is_taken_from_them(tmp_path):
    for name in ("db.sqlite3", "db.sqlite3-wal", "db.sqlite3-shm"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    keep_private(tmp_path / "db.sqlite3")
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}
    keep_private(tmp_path / "none.sqlite3")
    assert not (tmp_path / "none.sqlite3").exists()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout")
@pytest.mark.parametrize("name", ["deploy/.env", ".env", "var/secret_key", "var/memorymark.sqlite3"])
def test_git_leaves_out_what_holds_keys_and_data(name):
    assert subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT).returncode == 0


@pytest.mark.parametrize(
    "pattern", [".git", "**/.env", "var", "**/*.sqlite3*", "**/secret_key", "**/*.pem", "**/*.key"]
)
def test_the_image_leaves_out_what_holds_keys_and_data(pattern):
    assert pattern in (ROOT / ".dockerignore").read_text().splitlines()


def test_the_image_runs_as_a_user_of_its_own():
    lines = (ROOT / "deploy" / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER memorymark"]


def test_compose_passes_production_settings_to_all_and_an_administrator_to_who_makes_one():
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]
    ours = {name: service["environment"] for name, service in services.items() if name != "database"}
    wanted = {"MEMORYMARK_PRODUCTION", "MEMORYMARK_ALLOWED_HOSTS", "MEMORYMARK_TRUSTED_PROXIES", "SECRET_KEY"}
    assert {name: wanted - environment.keys() for name, environment in ours.items()} == {name: set() for name in ours}
    assert [name for name, passed in ours.items() if "MEMORYMARK_ADMIN_PASSWORD" in passed] == ["migrate"]
    assert "first_administrator" in services["migrate"]["command"]


def test_the_example_names_every_variable_that_compose_wants():
    wanted = set(re.findall(r"\$\{(\w+):\?\}", (ROOT / "deploy" / "compose.yaml").read_text()))
    given = {line.partition("=")[0] for line in (ROOT / "deploy" / ".env.example").read_text().splitlines()}
    assert wanted
    assert wanted <= given
