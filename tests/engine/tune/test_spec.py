"""A command is checked before it is started, and hides what is secret."""

from pathlib import Path

import pytest

from engine.errors import SpecError
from engine.tune.evidence import Ended
from engine.tune.failure import describe_failure
from engine.tune.spec import TuneSpec, function_command

COMMAND = ("python", "train.py", "--batch-size", "{batch_size}", "--output", "{out}")
FUNCTION = function_command("lab.train:make_step")
READS = ("python", "train.py", "--config=conf/a.yaml", "./conf/a.yaml", "data=conf/a.yaml.old", "{out}")
CONFIG = {"batch": "config", "batch_in": "conf/a.yaml:train.batch_size"}


@pytest.mark.parametrize(
    ("command", "changes", "field"),
    [
        ((), {}, "command"),
        (("python", "train.py"), {}, "command"),
        (COMMAND, {"batch": "hf"}, "batch"),
        (COMMAND, {"batch": "guess"}, "batch"),
        (COMMAND, {"device": "gpu"}, "device"),
        (COMMAND, {"max_batch_size": 0}, "max_batch_size"),
        (COMMAND, {"start_batch_size": 8, "max_batch_size": 4}, "start_batch_size"),
        (COMMAND, {"current_batch_size": True}, "current_batch_size"),
        (COMMAND, {"whole_run": "no"}, "whole_run"),
        (COMMAND, {"batch": "function"}, "batch"),
        (FUNCTION, {"whole_run": True, "batch": "function"}, "whole_run"),
        (FUNCTION, {"batch": "function", "batch_in": "a.yaml:b"}, "batch_in"),
        (COMMAND, {**CONFIG, "batch_in": "conf/a.yaml:b"}, "batch"),
        (COMMAND, {**CONFIG, "batch": "template"}, "batch_in"),
        (READS, {"batch_in": "conf/a.yaml:b"}, "batch_in"),
        (READS, {"batch": "config"}, "batch_in"),
        (READS, {**CONFIG, "batch": "env"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/a.yaml"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/a.yaml:"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/a.yaml:a\nb"}, "batch_in"),
        (READS, {**CONFIG, "batch_in": 1}, "batch_in"),
        (READS, {**CONFIG, "batch_in": "conf/b.yaml:train.batch_size"}, "command"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_field(command: tuple[str, ...], changes: dict, field: str) -> None:
    with pytest.raises(SpecError) as refused:
        TuneSpec(command, **changes)
    assert refused.value.field == field


def test_a_function_is_named_and_its_module_is_its_script() -> None:
    spec = TuneSpec(FUNCTION, batch="function")
    assert (spec.model, spec.to_dict()["function"]) == ("lab.train:make_step",) * 2
    assert spec.files == ("lab/train.py", "lab/train/__init__.py")
    assert TuneSpec.from_dict({"command": list(FUNCTION), "batch": "function"}) == spec


def test_a_python_that_cannot_be_found_is_refused_by_its_name() -> None:
    for spec, field in ((function_command("a:b", "/no/python"), "python"), (("/no/python", "{batch_size}"), "command")):
        with pytest.raises(SpecError) as refused:
            TuneSpec(spec, batch="function" if field == "python" else "template").check_program()
        assert refused.value.field == field


@pytest.mark.parametrize(
    ("command", "is_refused"),
    [
        (("python", "nope.py"), True),
        (("python3.11", "-u", "-OO", "nope.py"), True),
        (("python", "no_folder"), True),
        (("python", "-uB", "train.py"), False),
        (("python", "train.py", "--config", "nope.py"), False),
        (("python", "-m", "nope"), False),
        (("python", "-X", "dev", "nope.py"), False),  # whether an option has a value is Python's to know
        (("python", "-c", "print(1)"), False),
        (("python", "{out}/nope.py"), False),
        (("torchrun", "nope.py"), False),
        (("python",), False),
    ],
)
def test_a_script_that_is_not_there_is_refused(command: tuple[str, ...], is_refused: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    spec = TuneSpec((*command, "{batch_size}"), directory=str(tmp_path))
    if not is_refused:
        return spec.check_script()
    with pytest.raises(SpecError, match=f"^command: '{command[-1]}' is not in {tmp_path}$"):
        spec.check_script()


def test_the_placeholders_are_filled_in_and_other_braces_stay() -> None:
    spec = TuneSpec((*COMMAND, '{"lr": 1}'))
    assert spec.arguments(40, "/o") == ["python", "train.py", "--batch-size", "40", "--output", "/o", '{"lr": 1}']


def test_a_multiple_of_the_batch_size_is_filled_in_for_a_script_that_divides_by_its_ranks() -> None:
    spec = TuneSpec(("python", "train.py", "total={batch_size*2}", "--each={batch_size}", "{batch_size*x}"))
    assert spec.arguments(40, "/o")[2:] == ["total=80", "--each=40", "{batch_size*x}"]
    with pytest.raises(SpecError, match="holds no"):
        TuneSpec(("python", "train.py", "{batch_size*0}"))


def test_a_copy_takes_the_place_of_the_config_file_in_the_command_and_not_in_what_is_run_by_hand() -> None:
    spec = TuneSpec(READS, **CONFIG)
    assert spec.arguments(40, "/o", "c.yaml")[2:] == ["--config=c.yaml", "c.yaml", "data=conf/a.yaml.old", "/o"]
    by_hand = describe_failure(spec, 40, Ended())
    assert by_hand.endswith("/a.yaml data=conf/a.yaml.old OUT\n  with train.batch_size: 40 in conf/a.yaml")
    assert TuneSpec.from_dict({"command": list(READS), **CONFIG}) == spec
    with pytest.raises(SpecError, match="command: names no b.yaml; --batch-in puts a copy in its place"):
        TuneSpec(READS, batch="config", batch_in="b.yaml:a")


def test_a_command_whose_config_file_was_hidden_as_a_secret_can_be_read() -> None:
    assert TuneSpec(("python", "train.py", "--auth=***"), **CONFIG).arguments(8, "/o")[2] == "--auth=***"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (COMMAND, "train.py"),
        (("torchrun", "--nproc-per-node", "2", "x/run_clm.py", "{batch_size}"), "run_clm.py"),
        (("python", "-m", "lab.train", "{batch_size}"), "lab.train"),
        (("./train", "{batch_size}"), "train"),
        (("./train", "{batch_size*2}/a.py"), "train"),
    ],
)
def test_a_command_is_named_after_its_script(command: tuple[str, ...], name: str) -> None:
    assert TuneSpec(command).model == name


def test_secrets_of_a_command_are_hidden_in_documents() -> None:
    said = TuneSpec(("env", "HF_TOKEN=abc", "python", "t.py", "{batch_size}")).to_dict()["command"]
    assert said == ["env", "HF_TOKEN=***", "python", "t.py", "{batch_size}"]
