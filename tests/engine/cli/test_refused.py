"""A run whose batch size was refused names the command that says what to change."""

import json
import shlex
from dataclasses import replace

from engine.cli.main import main
from engine.cli.printing.refused import change_lines_after
from engine.errors import SpecError
from engine.results.result import DeviceFacts
from engine.spec import RunSpec
from engine.text.units import GIB
from tests.engine.catalog.hostile_configs import LLAMA
from tests.factories import make_result, make_result_that_does_not_fit


def test_a_batch_that_fits_needs_no_change():
    assert change_lines_after(make_result()) == []


def test_a_refused_batch_names_a_command_that_parses(capsys):
    refused = make_result_that_does_not_fit()
    device = DeviceFacts("cpu", "cpu", "A CPU", 8 * GIB, limit_bytes=4 * GIB)
    spec = RunSpec("bert-tiny", precision="bf16", gradient_checkpointing=True, sequence_length=64)
    (line,) = change_lines_after(replace(refused, spec=spec, device=device))
    command = line.partition("estimate ")[2]
    assert command == (
        "bert-tiny --gpu cpu --memory-limit 4GiB --sequence-length 64 --precision bf16 "
        "--gradient-checkpointing --batch-size 16 --what-to-change"
    )
    # up to the batch size nothing is wrong with it: one that is out of range is refused by its name
    status = main(["estimate", *command.replace("--batch-size 16", "--batch-size 0").split()])
    assert status == SpecError.exit_status
    assert "--batch-size: 0" in capsys.readouterr().err


def test_the_command_for_a_model_of_a_config_reads_it_from_its_file(tmp_path, capsys):
    path = tmp_path / "my config.json"
    path.write_text(json.dumps(LLAMA))
    spec = RunSpec("config", config=LLAMA, task="text-generation", config_parameters=1_000_000, precision="bf16")
    device = DeviceFacts("cpu", "cpu", "A CPU", 8 * GIB, limit_bytes=4 * GIB)
    (line,) = change_lines_after(replace(make_result_that_does_not_fit(), spec=spec, device=device))
    words = [str(path) if word == "FILE" else word for word in shlex.split(line.partition("engine ")[2])]
    # up to the card nothing is wrong with it, and so the model is not built
    assert main([*words, "--memory", "24GiB"]) == SpecError.exit_status
    assert capsys.readouterr().err.startswith("error: --gpu: give a GPU with --gpu")
    assert words[3:7] == ["--task", "text-generation", "--gpu", "cpu"]


def test_a_card_is_named_as_the_catalogue_has_it():
    refused = make_result_that_does_not_fit()
    device = DeviceFacts("cuda:0", "cuda", "NVIDIA A100-SXM4-40GB", 42_298_834_944, compute_capability="8.0")
    (line,) = change_lines_after(replace(refused, device=device))
    assert "--gpu a100-40gb --" in line
