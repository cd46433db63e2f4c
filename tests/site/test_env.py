"""What the environment may say, and that nonsense is refused by name."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

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


def test_a_folder_that_cannot_be_made_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="cannot create this folder .*; set THIS"):
        writable_folder(tmp_path / "file" / "var", remedy="set THIS")


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
