"""`python -m engine fit qlora.yml`: whether the training of another tool's file fits, and the line that helps."""

import json

import pytest

from engine.cli.main import main
from engine.training_files.training_file import read_training_file
from tests.engine.cli.test_estimate_command import traces  # noqa: F401  (a fixture)
from tests.engine.training_files.test_training_file import AXOLOTL, LLAMA_FACTORY

pytestmark = pytest.mark.usefixtures("traces")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qlora.yml").write_text(AXOLOTL)
    return "qlora.yml"


def test_a_file_that_fits_says_how_it_was_read(file, capsys):
    assert main(["fit", file, "--gpu", "t4"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ESTIMATE: qlora.yml fits on NVIDIA T4: ")
    for said in ("Read (axolotl): base_model (line 1)", "Assumed: FlashAttention", "Nothing was measured"):
        assert said in out
    assert "tune --batch-in qlora.yml:micro_batch_size -- axolotl train qlora.yml" in out


def test_a_file_that_does_not_fit_gets_the_smallest_change_as_lines_and_a_copy(file, tmp_path, capsys):
    assert main(["fit", file, "--gpu", "t4", "--batch-size", "4000", "--write", "new.yml"]) == 1
    out = capsys.readouterr().out
    assert "does not fit on NVIDIA T4" in out
    assert "line 9  micro_batch_size: 500" in out
    spec = read_training_file(tmp_path / "new.yml", {}).spec
    assert (spec.current_batch_size, spec.accumulation_steps) == (500, 32)
    assert main(["fit", file, "--gpu", "t4", "--batch-size", "4000", "--write", "new.yml"]) == 2
    assert "is there already" in capsys.readouterr().err


def test_what_is_not_estimated_and_takes_memory_makes_no_yes(file, tmp_path, capsys):
    (tmp_path / file).write_text(f"{AXOLOTL}lora_modules_to_save: [embed_tokens]\n")
    assert main(["fit", file, "--gpu", "t4"]) == 1
    assert "NOT ESTIMATED: lora_modules_to_save." in capsys.readouterr().out


def test_without_a_gpu_all_are_listed_with_the_first_that_fits(file, capsys):
    assert main(["fit", file]) == 0
    out = capsys.readouterr().out
    assert "fits 34 of 34 GPUs with the margin of error; the one with the least memory: " in out
    assert out.count("GiB") >= 34


def test_the_document_has_the_verdict_the_settings_and_every_key_with_its_line(file, capsys):
    assert main(["fit", file, "--gpu", "t4", "--batch-size", "4000", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["tool"], document["fits"], document["settings"]["model"]) == ("axolotl", [], "llama-3.2-1b")
    assert {"key": "base_model", "line": 1} in document["read"]
    assert document["change"]["micro_batch_size"] == 500


def test_several_gpus_take_the_strategy_of_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full.yaml").write_text(LLAMA_FACTORY)
    assert main(["fit", "full.yaml", "--gpu", "a100-80gb", "--ranks", "4"]) == 0
    out = capsys.readouterr().out
    assert "fits on 4 x NVIDIA A100" in out
    assert "one GPU" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no.yaml",), "no.yaml cannot be read: No such file"),
        (("qlora.yml", "--write", "new.yml"), "--write: is for one GPU"),
        (("qlora.yml", "--gpu", "t5"), "t5"),
        (("qlora.yml", "--ranks", "2,4"), "--ranks: is one number for a file"),
        (("qlora.yml", "--ranks", "many"), "--ranks: "),
        (("qlora.yml", "--batch-size", "0"), "line 9: micro_batch_size: "),
        (("llama-3.2-2b",), "llama-3.2-2b"),
    ],
)
def test_a_wrong_question_ends_with_2_and_writes_nothing(file, tmp_path, capsys, arguments, said):
    assert main(["fit", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new.yml").exists()
