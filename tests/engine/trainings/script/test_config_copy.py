"""A config gets another batch size at one key of a copy, and nothing else of its text changes."""

import os
import sys
import time
from pathlib import Path

import pytest

from engine.errors import SpecError
from engine.trainings.script.config_text import number_in, with_number
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.config_file import config_copy, number_in_config
from engine.trainings.script.start.launch import Place, Watching

YAML = """\
# ünï — a comment with 8
defaults: &shared {lr: 1e-3, batch_size: 4}   # not this one
train:\r
    <<: *shared
    batch_size:   8    # eight
    'auto size': auto
    quoted: "8"
stages: [{batch_size: 2}, {batch_size: 3}]
tagged: !include other.yaml
anchored: &size 6
again: *size
switch: true
zero: 0
text: |
  batch_size: 8
"""
JSON = '{\n\t"train":\t{"lr":-1.5E+3, "note": "\\"3\\\\", "batch_size":8, "ü":"\\ud83d\\ude00"},\n"list": [1, 2]}\n'
TOML = """\
# ü
title = "8"
batch_size = 8 # as it was

[train]
batch_size   =   +1_6
inline = { batch_size = 2,  other = [ 3,
   4, ] }
dotted.batch_size = 5
hex = 0x10
small = 0.5

[[stage]]
batch_size = 6
[[stage]]
batch_size = 7\r
[after]
[train.deep]
batch_size = 9
"""
PYTHON = '''\
"""ü batch_size = 8"""
batch_size = 8  # ünï
wide: int = 1_6
train = dict(batch_size = 2, loader=Loader("ü", batch_size=3), **more)
table = {"é": "ü", "batch_size": 4}; after = 5
config.batch_size = 6
config["data"]["batch_size"] = (
    7)
_, pair = 1, 2
product = 4 * 2

class Config:
    batch_size = 9
    class Data(Base):
        batch_size: int = field(default=10)
    empty: int

def get_config(device):
    made = ConfigDict()
    if device:
        made.batch_size = 11\r
    return made
'''
KEYS = [
    (".yaml", YAML, "train.batch_size", "8"),
    (".yaml", YAML, "defaults.batch_size", "4"),
    (".yml", YAML, "stages.1.batch_size", "3"),
    (".YAML", YAML, "anchored", "6"),
    (".json", JSON, "train.batch_size", "8"),
    (".json", JSON, "list.1", "2"),
    (".toml", TOML, "batch_size", "8"),
    (".toml", TOML, "train.batch_size", "+1_6"),
    (".toml", TOML, "train.inline.batch_size", "2"),
    (".toml", TOML, "train.inline.other.1", "4"),
    (".toml", TOML, "train.dotted.batch_size", "5"),
    (".toml", TOML, "stage.1.batch_size", "7"),
    (".toml", TOML, "train.deep.batch_size", "9"),
    (".py", PYTHON, "batch_size", "8"),
    (".py", PYTHON, "wide", "1_6"),
    (".py", PYTHON, "train.batch_size", "2"),
    (".py", PYTHON, "train.loader.batch_size", "3"),
    (".py", PYTHON, "table.batch_size", "4"),
    (".py", PYTHON, "after", "5"),
    (".py", PYTHON, "config.batch_size", "6"),
    (".py", PYTHON, "config.data.batch_size", "7"),
    (".py", PYTHON, "Config.batch_size", "9"),
    (".py", PYTHON, "Config.Data.batch_size.default", "10"),
    (".py", PYTHON, "made.batch_size", "11"),
]


@pytest.mark.parametrize(("suffix", "text", "key", "old"), KEYS)
def test_nothing_but_the_number_changes(suffix: str, text: str, key: str, old: str) -> None:
    changed = with_number(text, suffix, key, 123_456)
    before, _, after = changed.partition("123456")
    assert f"{before}{old}{after}" == text
    assert (number_in(text, suffix, key), number_in(changed, suffix, key)) == (int(old), 123_456)


@pytest.mark.parametrize(
    ("suffix", "text", "key", "message"),
    [
        (".yaml", YAML, "train.auto size", "train.auto size is 'auto', no whole number"),
        (".yaml", YAML, "train.quoted", "train.quoted is '8', no whole number"),
        (".yaml", YAML, "switch", "switch is 'true', no whole number"),
        (".yaml", YAML, "zero", "zero is '0', no whole number"),
        (".yaml", YAML, "tagged", "tagged is 'other.yaml', no whole number"),
        (".yaml", YAML, "train.batchsize", "has no train.batchsize; nearest: train.batch_size, "),
        (".yaml", YAML, "train", "has no train; nearest: "),
        (".yaml", YAML, "again", "has no again; nearest: "),
        (".yaml", "a: 1\na: 2\n", "a", "sets a 2 times"),
        (".yaml", "a: [", "a", "is no YAML that can be read: while parsing"),
        (".yaml", "", "a", "has no a; it holds no whole number"),
        (".yaml", "a: 1\n---\na: 2\n", "a", "is no YAML that can be read: expected a single document"),
        (".json", '{"a": "1"}', "a", "a is '1', no whole number"),
        (".json", '{"a": 1.5}', "a", "a is '1.5', no whole number"),
        (".json", '{"a": 0}', "a", "a is '0', no whole number"),
        (".json", '{"a": 1, "a": 2}', "a", "sets a 2 times"),
        (".json", '{"a": 1,}', "a", "is no JSON that can be read: Expecting property name"),
        (".toml", TOML, "title", "title is '8', no whole number"),
        (".toml", TOML, "train.hex", "train.hex is '0x10', no whole number"),
        (".toml", TOML, "train.small", "train.small is '0.5', no whole number"),
        (".toml", TOML, "batchsize", "has no batchsize; nearest: batch_size, "),
        (".toml", "a = ", "a", "is no TOML that can be read: "),
        (".py", PYTHON, "product", r"product is '4 \* 2', no whole number"),
        (".py", PYTHON, "batchsize", "has no batchsize; nearest: batch_size, "),
        (".py", "a = 1\nif x:\n    a = 2\n", "a", "sets a 2 times"),
        (".py", "a = True", "a", "a is 'True', no whole number"),
        (".py", "a = -1", "a", "a is '-1', no whole number"),
        (".py", "a = (", "a", "is no Python that can be read: "),
        (".ini", "a = 1", "a", "is none of .yaml, .yml, .json, .toml, .py"),
    ],
)
def test_what_is_no_whole_number_is_refused_with_what_it_is(suffix: str, text: str, key: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        with_number(text, suffix, key, 16)


def test_an_alias_that_holds_itself_is_read_to_its_end() -> None:
    assert with_number("a: &a\n  b: 1\n  c: *a\n", ".yaml", "a.b", 2) == "a: &a\n  b: 2\n  c: *a\n"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".json", "[" * 100_000),
        (".toml", f"a = {'[' * 100_000}"),
        (".yaml", "[" * 100_000),
        (".py", f"a = {'-' * 100_000}1"),
        (".py", f"a = {'1 + ' * 100_000}1"),
    ],
)
def test_what_is_nested_too_deeply_is_refused(suffix: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"^is nested too deeply|exceeded maximum nesting depth"):
        with_number(text, suffix, "a", 16)


def test_the_time_for_toml_grows_with_its_numbers_and_not_with_their_square() -> None:
    def seconds(lines: int) -> float:
        text = "a = 8\n" + "".join(f"k{number} = {{ b = {number} }}\n" for number in range(lines))
        began = time.process_time()
        assert number_in(text, ".toml", "a") == 8
        return time.process_time() - began

    assert seconds(1000) < 40 * seconds(100)  # about 10; the square is 100


TEXT = b"# as it was\r\ntrain:\r\n  batch_size: 8\r\n"


def spec_of(folder: Path, key: str = "train.batch_size", file: str = "config.yaml") -> TuneSpec:
    return TuneSpec(("cat", file), batch="config", batch_in=f"{file}:{key}", directory=str(folder))


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("start")
    (folder / "out").mkdir()
    (folder / "notes").mkdir()
    return Place(folder / "notes", folder / "out", folder / "log")


def started(spec: TuneSpec, place: Place) -> bytes:
    """What a start prints."""
    running, until = begin_command(spec, 16, Watching(1), place), time.monotonic() + 60
    while not running.has_ended() and time.monotonic() < until:
        time.sleep(0.05)
    assert running.end() == 0, place.log.read_text()
    return place.log.read_bytes()


def test_a_start_is_given_the_copy(tmp_path: Path, place: Place) -> None:
    (tmp_path / "config.yaml").write_bytes(TEXT)
    assert started(spec_of(tmp_path), place) == TEXT.replace(b"8", b"16")
    assert (tmp_path / "config.yaml").read_bytes() == TEXT
    assert number_in_config(spec_of(tmp_path)) == 8


IMPORTS = """\
import sys
from importlib import import_module
from pathlib import Path
path = Path(sys.argv[1])
sys.path.insert(0, str(path.parent))
print(import_module(path.stem).train)
"""


def test_a_config_finds_what_lies_beside_it_and_nothing_of_its_copy_is_left(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/base.txt").write_text("the base")
    config = tmp_path / "conf/run.py"
    config.write_text("import pathlib\ntrain = [8, pathlib.Path(__file__).with_name('base.txt').read_text()]\n")
    command = (sys.executable, "-c", IMPORTS, "conf/run.py")
    spec = TuneSpec(command, batch="config", batch_in="conf/run.py:train.0", directory=str(tmp_path))
    assert started(spec, place) == b"[16, 'the base']\n"
    assert {path.name for path in tmp_path.rglob("*")} == {"conf", "base.txt", "run.py", "__pycache__"}


def test_a_copy_that_a_killed_run_left_is_removed_and_that_of_another_run_is_not(tmp_path: Path, place: Place) -> None:
    (tmp_path / "config.yaml").write_bytes(TEXT)
    with config_copy(spec_of(tmp_path), 16, place) as copy:
        assert copy is not None
        of_others = [tmp_path / copy.replace(f"_{os.getpid()}_", f"_{pid}_") for pid in (2**22 + 1, os.getppid())]
        for each in of_others:
            each.touch()
        with config_copy(spec_of(tmp_path), 32, place) as second:
            assert {path.name for path in tmp_path.iterdir()} == {"config.yaml", copy, second, of_others[1].name}


def test_a_copy_that_cannot_lie_beside_its_file_lies_in_the_folder_of_the_start(tmp_path: Path, place: Place) -> None:
    file = f"{'a' * 250}.yaml"  # with anything before it, it is too long for a file system
    (tmp_path / file).write_bytes(TEXT)
    said, _, copied = started(spec_of(tmp_path, file=file), place).partition(b"\n")
    assert copied == TEXT.replace(b"8", b"16")
    assert said.startswith(b"MemoryMark: no copy can be written beside aaa")


@pytest.mark.parametrize(
    ("content", "file", "message"),
    [
        (b"train: {batch_size: auto}", "config.yaml", "config.yaml: train.batch_size is 'auto', no whole number"),
        (b"batch_size: 8", "config.yaml", "config.yaml: has no train.batch_size; nearest: batch_size"),
        (b"\xff", "config.yaml", "config.yaml: 'utf-8' codec can't decode"),
        (b"", "other.yaml", "other.yaml: cannot be read: No such file"),
        (b" " * 5_000_000, "config.yaml", "config.yaml: has more than 4 MB"),
    ],
)
def test_a_config_file_without_the_number_is_refused_by_its_name(
    tmp_path: Path, content: bytes, file: str, message: str
) -> None:
    (tmp_path / "config.yaml").write_bytes(content)
    with pytest.raises(SpecError, match=f"^batch_in: {message}"):
        number_in_config(spec_of(tmp_path, file=file))
