"""The arguments of the command line as people type them: help, misspelt words, and errors in the words they typed."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

from engine.cli.command import Command
from engine.cli.main import COMMANDS, OVERVIEW, main, with_verb
from engine.cli.measure import COMMAND as MEASURE
from engine.cli.tune import COMMAND as TUNE
from engine.machine.device_lock import held, lock_path
from engine.settings.spec import SETTINGS

ROOT = Path(__file__).parents[3]
GROUPS = ("What to train:", "Where and limits:", "Output:", "Advanced:")
RARE = (
    *("--spec", "--events", "--resume", "--result-file", "--no-breakdown", "--no-estimate", "--calibration"),
    *("--soak-steps", "--start", "--max"),
)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line about arguments that are refused."""
    assert main(list(arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    return line


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_explains_itself_within_80_columns(name: str, flag: str, capsys) -> None:
    text = said(capsys, name, flag)
    assert text.startswith("Usage: python -m engine")
    assert max(map(len, text.splitlines())) <= 80
    assert "null" not in text
    assert "\x1b" not in text
    assert not re.search(r"\n *\n *\n *\S", text)  # no two empty lines within
    command = resolve_name(f"engine.cli.{COMMANDS[name]}")
    assert (
        max((len(line) for line in command.help.splitlines() if line.startswith("python -m engine")), default=0) <= 80
    )


@pytest.mark.parametrize("name", ["measure", "tune", "estimate", "fit", "validate"])
def test_help_shows_the_rarely_used_options_only_when_all_are_wanted(name: str, capsys) -> None:
    shown, everything = said(capsys, name, "--help"), said(capsys, name, "--help-all")
    assert len(everything.splitlines()) > len(shown.splitlines())
    assert max(map(len, everything.splitlines())) <= 80
    for option in RARE:
        assert f"{option} " not in shown


def test_the_options_of_measure_are_in_four_groups_with_the_rare_ones_in_the_last(capsys) -> None:
    text = said(capsys, "measure", "--help-all")
    places = [text.index(group) for group in GROUPS]
    assert places == sorted(places)
    assert all(text.index(f"  {option} ") > places[-1] for option in RARE)


def test_every_setting_of_a_run_is_an_option_with_its_default() -> None:
    options = {param.name: param for param in MEASURE.params}
    assert set(SETTINGS) - {"config_parameters", "reserve_bytes"} <= set(options)  # --reserve takes bytes, too
    assert options["precision"].show_default == "default: fp32"
    assert options["sequence_length"].show_default == "default: the model's own"
    assert options["price_per_hour_usd"].opts == ["--price-per-hour"]


def test_the_help_of_a_setting_is_a_fragment_and_says_no_json() -> None:
    for name, each in SETTINGS.items():
        assert each.summary, name
        assert not each.summary.endswith("."), name
        assert "null" not in each.description, name


def test_help_is_short_and_plain_in_a_pipe_and_without_colour_where_that_is_wanted() -> None:
    quiet = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "engine", "measure", "--help"], cwd=ROOT, env=quiet, capture_output=True, check=True
    )
    assert b"\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) <= 70


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["--help"], {"engine.cli.tune", "engine.cli.estimate"}),
        (["measure", "bert", "--fster"], {"engine.questions.size", "engine.questions.kinds"}),
        (
            ["tune", "--reserve", "5", "--", "true", "{batch_size}"],
            {"engine.trainings.script.run", "engine.questions.kinds"},
        ),
    ],
)
def test_help_and_refused_arguments_load_nothing_that_runs(arguments: list[str], unneeded: set[str]) -> None:
    unneeded |= {"torch", "django", "transformers"}
    code = (
        f"import sys; from engine.cli.main import main; main({arguments}); "
        f"sys.exit(', '.join({unneeded} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_bare_program_says_what_it_is_and_how_to_get_help(capsys) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.err == OVERVIEW
    assert len(OVERVIEW.splitlines()) <= 12
    assert max(map(len, OVERVIEW.splitlines())) <= 80
    assert "tune -- python train.py" in OVERVIEW


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tun", "train.py"], "Did you mean 'tune'?"),
        (["brt-tiny"], "'bert-tiny'"),
        (["measure", "brt-tiny"], "model: 'brt-tiny' is not offered; did you mean bert-tiny?"),
        (["bert", "--memory-limt", "1GiB"], "No such option '--memory-limt'. Did you mean '--memory-limit'?"),
        (["--verison"], "--version"),
        (["bert", "--precision", "bf61"], "--precision: 'bf61' is not offered; did you mean bf16"),
        (["estimate", "bert", "--gpu", "rtx4090"], "--gpu: 'rtx4090' is not in the catalogue; did you mean rtx-4090"),
        (["fit", "bert", "--as", "slrum"], "'slrum' is not offered; did you mean slurm? Offered: slurm, k8s"),
        (["list", "model"], "did you mean models?"),
        (["nonsense"], "See `python -m engine --help` and `python -m engine list models`."),
        (["bert", "--colour", "red"], "See `python -m engine measure --help`."),
    ],
)
def test_a_misspelt_word_is_refused_in_one_line_with_what_was_meant_or_how_to_list(arguments, words, capsys) -> None:
    line = refused(capsys, *arguments)
    assert words in line
    assert len(line) < 250


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["bert", "--reserve", "5"], "error: --reserve: 5.0 is out of range; from 0 to 0.5; 5 % is 0.05"),
        (
            ["bert", "--reserve", "5 %"],
            "error: --reserve: '5 %' is neither a share such as 0.1 nor a size with its unit such as 10GiB",
        ),
        (
            ["tune", "--reserve", "2GiB", "--memory-limit", "2GiB", "--", "true", "{batch_size}"],
            "error: --reserve: 2.0 GiB must be below the 2.0 GiB that the training may take",
        ),
        (["bert", "--fits", "9", "--max", "4"], "error: --fits: must not be above --max (4)"),
        (
            ["bert", "--device", "tpu"],
            "error: --device: 'tpu' is not a device; auto, cuda, cuda:N, xpu, xpu:N, mps or cpu",
        ),
        (
            ["bert", "gpu"],
            "error: device: 'gpu' is not a device; did you mean cuda? "
            "Offered: auto, cuda, cuda:N, xpu, xpu:N, mps or cpu",
        ),
        (
            ["tune", "--reserve", "5", "--", "true", "{batch_size}"],
            "error: --reserve: 5.0 is out of range; from 0 to 0.5; 5 % is 0.05",
        ),
        (
            ["validate", "bert", "--gradient-tolerance", "2"],
            "error: --gradient-tolerance: 2.0 is out of range; from 0 to 1; 2 % is 0.02",
        ),
    ],
)
def test_an_error_names_the_option_that_was_typed(arguments, line, capsys) -> None:
    assert refused(capsys, *arguments) == line


def test_an_error_about_json_names_its_field(capsys) -> None:
    line = refused(capsys, "--spec", '{"model": "bert", "reserve_fraction": 5}')
    assert line == "error: reserve_fraction: 5 is out of range; from 0 to 0.5; 5 % is 0.05"


def test_the_error_of_events_names_the_field_as_the_portal_knows_it(capsys) -> None:
    assert main(["bert", "--reserve", "5", "--events"]) == 2
    event = json.loads(capsys.readouterr().out)
    assert (event["event"], event["error"]["field"]) == ("error", "reserve_fraction")


@pytest.mark.parametrize("option", ["--colour", "brt"])
def test_wrong_arguments_are_an_event_too_where_events_are_read(option: str, capsys) -> None:
    assert main([option, "--events"]) == 2
    assert json.loads(capsys.readouterr().out)["event"] == "error"


@pytest.mark.parametrize(
    "arguments",
    [
        ("bert", "--json", "--events"),
        ("tune", "--json", "--events", "--", "true", "{batch_size}"),
        ("advise", "--json", "--code", "torch", "x.json"),
    ],
)
def test_options_that_exclude_each_other_are_refused(arguments: tuple[str, ...], capsys) -> None:
    assert main(list(arguments)) == 2
    assert "cannot be given together" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["bert"], ["bert", "cpu", "--json"], ["config"], ["--spec", "{}"], ["--fits=3", "bert"]],
)
def test_the_verb_measure_may_be_left_out(arguments: list[str]) -> None:
    assert with_verb(arguments) == ["measure", *arguments]
    assert with_verb(["measure", *arguments]) == ["measure", *arguments]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--validate"], ["validate", "--check", "compile", "bert"]),
        (["bert", "cpu", "--validate", "--json"], ["validate", "--check", "compile", "bert", "cpu", "--json"]),
        (["--validate-backward", "gpt2", "cpu"], ["validate", "gpt2", "cpu"]),
        (["tune", "--", "python", "train.py", "--validate"], ["tune", "--", "python", "train.py", "--validate"]),
    ],
)
def test_the_former_options_of_a_validation_run_the_command(arguments: list[str], meant: list[str]) -> None:
    assert with_verb(arguments) == meant


def test_the_options_of_every_form_come_through() -> None:
    given = ["bert", "cpu", "--precision=bf16", "--resume", "-", "--fits", "3", "--max", "4", "--ema"]
    params = parsed(MEASURE, *given)
    assert (params["model"], params["device"], params["resume"]) == ("bert", "cpu", "-")
    assert (params["precision"], params["check_batch_size"], params["max_batch_size"]) == ("bf16", 3, 4)
    assert (params["ema"], params["pretrained"], params["no_estimate"]) == (True, None, None)


COMMAND = ("python", "train.py", "--json", "--help", "--", "--batch", "{batch_size}", "-x=", "")


@pytest.mark.parametrize("before", [("--",), ()])
def test_the_command_to_tune_stays_as_it_is(before: tuple[str, ...]) -> None:
    params = parsed(TUNE, "--device", "cpu", *before, *COMMAND)
    assert params["command"] == COMMAND
    assert params["device"] == "cpu"
    assert not params["json"]


def test_the_lists_have_a_short_form(capsys) -> None:
    for what in ("models", "gpus"):
        assert said(capsys, "list", what, "--json") == said(capsys, what, "--json")
        table = said(capsys, "list", what)
        assert table == said(capsys, what)
        assert max(map(len, table.splitlines())) <= 80


def test_a_file_that_is_no_result_is_refused_as_one(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.json"
    for content in ("{}", "[]", '{"a": 1}', '{"spec": {}}', "3", '{"boundary": {}}'):
        path.write_text(content)
        assert "no result" in refused(capsys, "advise", str(path))


def parsed(command: Command, *arguments: str) -> dict[str, object]:
    return command.make_context("memorymark", list(arguments)).params


def test_a_missing_script_is_said_before_the_device_is_held(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORYMARK_LOCK_DIR", str(tmp_path))
    with held(lock_path(device="cpu", uuid=None), "cpu", work="another run"):
        line = refused(capsys, "tune", "--device", "cpu", "--", sys.executable, "nope.py", "{batch_size}")
    assert line.startswith(f"error: command: 'nope.py' is not in {tmp_path}")
