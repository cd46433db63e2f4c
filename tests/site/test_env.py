"""What the environment may say, and that nonsense is refused by name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from memorymark_site.env import env_bool, env_list, env_number, env_path, env_text, kept_secret


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


def test_a_text_is_stripped():
    assert env_text("X", environ={"X": " a b "}) == "a b"


def test_a_relative_path_is_refused():
    with pytest.raises(ImproperlyConfigured, match="absolute"):
        env_path("X", Path("/default"), environ={"X": "var"})


def test_an_absolute_path_is_read():
    assert env_path("X", Path("/default"), environ={"X": "/data"}) == Path("/data")


def test_a_secret_is_made_once_and_kept_to_its_owner(tmp_path):
    path = tmp_path / "new" / "secret_key"
    first = kept_secret(path)
    assert kept_secret(path) == first
    assert len(first) > 50
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret_key"]


def test_processes_that_start_together_share_one_secret(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(kept_secret, [tmp_path / "secret_key"] * 8))) == 1
