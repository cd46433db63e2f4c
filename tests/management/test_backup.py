"""`manage.py backup` and `manage.py restore`, on the database of the tests."""

import stat
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analysis.management import database_copy
from analysis.models import Run
from tests.factories import make_card, make_run

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_was_backed_up_is_there_again_after_a_restore(tmp_path: Path) -> None:
    run, file = make_run(), tmp_path / "backup"
    call_command("backup", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
    Run.objects.all().delete()
    with pytest.raises(CommandError, match="not empty; --force"):
        call_command("restore", file)
    assert not Run.objects.exists()
    call_command("restore", file, force=True)
    assert Run.objects.get() == run


def test_neither_overwrites_unasked_nor_takes_what_is_no_backup(tmp_path: Path) -> None:
    run, file = make_run(), tmp_path / "notes.txt"
    file.write_text("my notes")
    with pytest.raises(CommandError, match=r"notes.txt exists; --force"):
        call_command("backup", file)
    assert file.read_text() == "my notes"
    with pytest.raises(CommandError, match="cannot be restored|pg_restore failed"):
        call_command("restore", file, force=True)
    with pytest.raises(CommandError, match="is no file"):
        call_command("restore", tmp_path / "missing", force=True)
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", tmp_path / "missing" / "backup")
    assert Run.objects.get() == run


def test_nothing_is_restored_below_a_worker_that_lives(tmp_path: Path) -> None:
    call_command("backup", tmp_path / "backup")
    run = make_run(device=make_card())
    with pytest.raises(CommandError, match="the worker of NVIDIA A100-SXM4-80GB was alive within the last 60 s"):
        call_command("restore", tmp_path / "backup", force=True)
    assert Run.objects.get() == run


def test_a_missing_postgresql_client_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_copy.connection, "vendor", "postgresql")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="pg_dump is not installed"):
        call_command("backup", tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []
