"""`manage.py command`: an administrator registers training commands without editing the file by hand."""

import os
import stat
import sys
import tomllib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analysis.runs.commands import registered_commands

TRAIN = (sys.executable, "train.py", "--batch-size", "{batch_size}")


@pytest.fixture(autouse=True)
def path(settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    settings.COMMANDS_FILE = settings.COMMANDS_FILE_DEFAULT = tmp_path / "commands.toml"
    return settings.COMMANDS_FILE


def manage(*arguments: str) -> str:
    out = StringIO()
    call_command("command", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_a_command_is_added_to_a_file_that_did_not_exist(path: Path, tmp_path: Path) -> None:
    out = manage("add", "tagger", "--directory", str(tmp_path), "--description", "Tags.", "--", *TRAIN)
    command = registered_commands()["tagger"]
    assert (command.command, command.directory, command.description) == (TRAIN, str(tmp_path), "Tags.")
    assert f"tagger is registered in {path}" in out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["commands.toml"]


def test_a_command_may_take_several_devices(path: Path, tmp_path: Path) -> None:
    manage("add", "tagger", "--directory", str(tmp_path), "--devices", "2", "--", *TRAIN)
    assert registered_commands()["tagger"].devices == 2
    assert "2 devices together" in manage("list")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_exists_keeps_its_mode_owner_and_group(path: Path, mode: int) -> None:
    path.write_text("")
    own = (12_345, 23_456) if os.geteuid() == 0 else (-1, max(os.getgroups(), default=-1))
    os.chown(path, *own)
    path.chmod(mode)
    before = path.stat()
    manage("add", "tagger", "--", *TRAIN)
    after = path.stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (mode, before.st_uid, before.st_gid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to a group that is not its own")
def test_a_group_that_may_not_be_kept_gives_nothing_to_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(descriptor: int, owner: int, group: int) -> None:
        raise PermissionError

    path.write_text("")
    os.chown(path, -1, 23_456)
    path.chmod(0o664)
    monkeypatch.setattr(os, "fchown", forbidden)
    manage("add", "tagger", "--", *TRAIN)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.parametrize(
    ("option", "parts"),
    [
        ("batch-size", ("--batch-size", "{batch_size}")),
        ("-b", ("-b", "{batch_size}")),
        ("train.bs=", ("train.bs={batch_size}",)),
    ],
)
def test_the_option_of_the_script_is_appended_with_the_batch_size(option: str, parts: tuple[str, ...]) -> None:
    manage("add", "tagger", f"--batch-option={option}", "--", sys.executable, "train.py")
    assert registered_commands()["tagger"].command == (sys.executable, "train.py", *parts)


def test_a_command_may_hold_two_dashes_and_options_of_this_command(path: Path) -> None:
    line = (sys.executable, "run.py", "--", "--directory", "x", "{batch_size}")
    manage("add", "tagger", "--", *line)
    assert registered_commands()["tagger"].command == line
    assert tomllib.loads(path.read_text())["command"][0]["directory"] == str(Path.cwd())


def test_what_the_file_holds_stays_with_its_comments(path: Path) -> None:
    before = '# of the lab\n[[command]]\nname = "old"  # since May\ncommand = ["python", "{batch_size}"]\n'
    path.write_text(before)
    manage("add", "tagger", "--offer", "memory_limit_bytes,current_batch_size", "--", *TRAIN)
    assert path.read_text().startswith(before)
    assert registered_commands()["tagger"].settings == ("memory_limit_bytes", "current_batch_size")
    manage("remove", "tagger")
    assert path.read_text().strip() == before.strip()


def test_a_function_is_added(path: Path) -> None:
    manage("add-function", "tagger", "lab.train:make_step", "--python", sys.executable, "--report-output")
    command = registered_commands()["tagger"]
    assert (command.function, command.python) == ("lab.train:make_step", sys.executable)
    assert command.report_output


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("Tagger", "--", *TRAIN), "name: 'Tagger' must be small letters"),
        (("tagger", "--", "no-such-program", "{batch_size}"), "command: 'no-such-program' is no program"),
        (("tagger", "--directory", "/no/such/folder", "--", *TRAIN), "directory: /no/such/folder is no folder"),
        (("tagger", "--batch", "hf", "--", *TRAIN), "batch: is hf, and the command holds {batch_size} too"),
        (("old", "--", *TRAIN), "name: old is registered already; give --replace"),
    ],
)
def test_what_the_checks_refuse_is_refused_with_its_field_and_changes_nothing(
    path: Path, arguments: Any, problem: str
) -> None:
    path.write_text('[[command]]\nname = "old"\ncommand = ["python", "{batch_size}"]\n')
    before = path.read_bytes()
    with pytest.raises(CommandError, match=".*") as refused:
        manage("add", *arguments)
    assert problem in str(refused.value)
    assert path.read_bytes() == before


def test_a_file_that_is_wrong_already_is_not_touched(path: Path) -> None:
    path.write_text("[[command")
    with pytest.raises(CommandError, match="is no TOML file"):
        manage("add", "tagger", "--", *TRAIN)
    assert path.read_text() == "[[command"


def test_a_command_is_replaced_where_that_is_wished() -> None:
    manage("add", "tagger", "--", *TRAIN)
    manage("add", "tagger", "--replace", "--", sys.executable, "other.py", "{batch_size}")
    assert [command.command[1] for command in registered_commands().values()] == ["other.py"]


def test_the_commands_are_listed_without_their_secrets() -> None:
    assert "No command is registered." in manage("list")
    manage("add", "tagger", "--", *TRAIN, "--token=abc123")
    out = manage("list")
    assert "tagger: " in out
    assert "--token=***" in out
    assert "abc" not in out


def test_check_fails_where_the_script_is_missing(tmp_path: Path) -> None:
    manage("add", "tagger", "--directory", str(tmp_path), "--", *TRAIN)
    with pytest.raises(CommandError, match="1 cannot be started on this host"):
        manage("check")
    (tmp_path / "train.py").touch()
    assert manage("check") == "tagger: ok\n"


def test_check_names_what_cannot_be_started_here(path: Path) -> None:
    path.write_text('[[command]]\nname = "gone"\ncommand = ["no-such-program", "{batch_size}"]\n')
    with pytest.raises(CommandError, match="1 cannot be started on this host") as refused:
        manage("check")
    assert refused.value.returncode == 2


def test_a_script_that_is_not_in_its_folder_is_warned_of(tmp_path: Path) -> None:
    out = manage("add", "tagger", "--directory", str(tmp_path), "--", *TRAIN)
    assert f"Warning: train.py is not in {tmp_path}" in out


def test_a_name_that_is_not_registered_cannot_be_removed() -> None:
    manage("add", "tagger", "--", *TRAIN)
    with pytest.raises(CommandError, match="name: 'other' is not registered; one of tagger"):
        manage("remove", "other")


def test_the_last_command_can_be_removed(path: Path) -> None:
    manage("add", "tagger", "--", *TRAIN)
    manage("remove", "tagger")
    assert registered_commands() == {}


def test_behind_a_link_the_file_itself_is_changed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    kept = tmp_path / "lab" / "commands.toml"
    path.symlink_to(kept)
    kept.touch()
    manage("add", "tagger", "--", *TRAIN)
    assert path.is_symlink()
    assert "tagger" in kept.read_text()
