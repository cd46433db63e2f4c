"""Secrets are hidden on command lines and in lines of output, and what is plainly none is shown."""

import random
import re
import shlex
import time
from pathlib import Path
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

import pytest

from engine.errors import SpecError
from engine.text.masking import HIDDEN, NAMES_VARIABLE, masked, masked_text, secret_names

BASE32, BASE36, BASE62 = f"{ascii_uppercase}234567", f"{ascii_lowercase}{digits}", f"{ascii_letters}{digits}"
N = 40_000
HOSTILE = ("a", "=", "-", "a:", "a@", "http://", "a.-", "key:", "key=", "key='", "key=\"'", "--key ", "-u ", "-u a:",
    "a_", "mysql -p ", "key=[", "password: ", "key=a,", "://a:", "wandb login -", "?sig=", "Bearer ", "key: {a", "eyJ",
    "0a1b2c3d", "0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d ")  # fmt: skip


def lines(name: str) -> list[str]:
    return [line for line in Path(__file__).with_name(name).read_text().splitlines() if not line.startswith("# ")]


def given_and_shown(line: str) -> tuple[str, str]:
    return re.sub("[«»]", "", line), re.sub("«.*?»", HIDDEN, line)


@pytest.mark.parametrize("line", lines("secret_commands.txt"))
def test_a_secret_of_a_command_is_hidden_and_nothing_else(line: str) -> None:
    given, shown = map(shlex.split, given_and_shown(line))
    assert masked(given) == shown
    assert masked(shown) == shown, "hidden once more, it would be another command"


@pytest.mark.parametrize("line", lines("secret_lines.txt"))
def test_a_secret_of_a_line_is_hidden_and_nothing_else(line: str) -> None:
    given, shown = given_and_shown(line)
    assert masked_text(given) == masked_text(shown) == shown


@pytest.mark.parametrize("line", lines("ordinary_commands.txt"))
def test_an_ordinary_command_stays_as_it_is(line: str) -> None:
    assert masked(shlex.split(line)) == shlex.split(line)


@pytest.mark.parametrize("line", lines("ordinary_lines.txt"))
def test_an_ordinary_line_stays_as_it_is(line: str) -> None:
    assert masked_text(line) == line


@pytest.mark.parametrize("letters", [BASE36, BASE32, BASE62])
def test_random_text_is_found_at_a_known_rate(letters: str) -> None:
    chosen = random.Random(20)
    texts = ["".join(chosen.choices(letters, k=24)) for _ in range(2_000)]
    assert masked(texts).count(HIDDEN) >= 0.9 * len(texts)


def test_each_argument_stays_one() -> None:
    for command in ([], [""], ["", "--key", ""], ["a\0b", "--password"], ["--password", "", "x"]):
        assert len(masked(command)) == len(command)


def test_an_administrator_adds_names(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["train", "--lab-pin", "abcd", "--vault=abcd", "LAB_PIN=abcd"]
    assert masked(command) == command
    monkeypatch.setenv(NAMES_VARIABLE, "pin, vault")
    assert masked(command) == ["train", "--lab-pin", HIDDEN, f"--vault={HIDDEN}", f"LAB_PIN={HIDDEN}"]


def test_a_name_that_no_option_has_is_refused() -> None:
    assert secret_names({NAMES_VARIABLE: " pin,,Vault "}) == ("pin", "vault")
    for text in ("a b", "--pin", "p*n", "x" * 41):
        with pytest.raises(SpecError, match=NAMES_VARIABLE):
            secret_names({NAMES_VARIABLE: text})


@pytest.mark.parametrize("part", HOSTILE)
def test_the_time_grows_with_the_length_alone(part: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        masked([part * (length // len(part))])
        return time.process_time() - began

    assert min(seconds(N) for _ in range(3)) < 16 * max(min(seconds(N // 8) for _ in range(3)), 0.002)
