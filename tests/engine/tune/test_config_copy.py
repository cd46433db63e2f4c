"""A config gets another batch size at one key, and nothing else of its text changes."""

import time

import pytest

from engine.tune.config_copy import number_in, with_number

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
