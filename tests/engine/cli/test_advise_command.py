"""`python -m engine advise`: what it prints of stored results and estimates, and what it refuses."""

import json
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.estimate.gpus import gpus
from engine.settings.spec import RunSpec
from tests.factories.results import make_result
from tests.fake_engine import estimate_of


@pytest.fixture
def result(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(make_result().to_dict()))
    return str(path)


def printed(capsys, *arguments):
    status = main(["advise", *arguments])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_global_batch_is_matched_exactly_and_the_learning_rate_is_only_named(capsys, result):
    status, output, _ = printed(capsys, result, "--json", "--global-batch", "48")
    advice = json.loads(output)
    assert status == 0
    assert advice["global_batch"]["pairs"]
    assert all(each["micro_batch_size"] * each["accumulation_steps"] == 48 for each in advice["global_batch"]["pairs"])
    assert [rule["name"] for rule in advice["learning_rate_rules"]] == ["linear", "square root"]
    assert all("learning_rate" in each["text"] for each in advice["snippets"])


def test_both_papers_are_named(capsys, result):
    _, output, _ = printed(capsys, result)
    assert "McCandlish et al. 2018" in output
    assert "Shallue et al. 2018" in output
    assert "A larger batch may need more samples" in output


def test_code_is_printed_alone_so_that_it_can_be_piped_to_a_file(capsys, result):
    _, output, _ = printed(capsys, result, "--code", "torch")
    compile(output, "pasted", "exec")


def test_estimate_is_labelled_and_has_no_speed(capsys, tmp_path):
    estimate = tmp_path / "estimate.json"
    estimate.write_text(json.dumps(estimate_of(RunSpec("bert"), gpus()["a10"])))
    _, output, _ = printed(capsys, str(estimate))
    assert output.startswith("ESTIMATE, nothing was measured")
    assert "samples/s" not in output


def test_estimate_of_several_gpus_is_divided_among_them_and_their_memory_has_the_exchange(capsys, tmp_path):
    estimate = tmp_path / "estimate.json"
    estimate.write_text(json.dumps(estimate_of(RunSpec("bert", ranks=8, strategy="ddp"), gpus()["a10"])))
    _, output, _ = printed(capsys, str(estimate), "--json")
    advice = json.loads(output)
    assert (advice["today_global_batch_size"], advice["global_batch"]["devices"]) == (16 * 8, 8)
    (accelerate,) = (each for each in advice["snippets"] if each["id"] == "accelerate")
    assert accelerate["note"] == "Start it with: accelerate launch --num_processes 8."
    status, _, error = printed(capsys, str(estimate), "--devices", "4")
    assert (status, error) == (2, "error: --devices: the estimate is of 8 GPUs: estimate that number of them\n")


def test_estimate_of_several_cards_needs_the_name_of_one(capsys, tmp_path):
    estimates = tmp_path / "estimates.json"
    estimates.write_text(json.dumps([estimate_of(RunSpec("bert"), gpus()[name]) for name in ("a10", "t4")]))
    status, _, error = printed(capsys, str(estimates))
    assert (status, error) == (2, "error: --gpu: name one GPU of this estimate: a10, t4\n")
    assert printed(capsys, str(estimates), "--gpu", "t4")[0] == 0


def test_library_that_cannot_train_this_is_refused_with_those_that_can(capsys, result):
    document = json.loads(Path(result).read_text())
    document["device"] |= {"kind": "xpu", "device": "xpu:0"}
    Path(result).write_text(json.dumps(document))
    status, _, error = printed(capsys, result, "--code", "lightning")
    assert status == 2
    assert "code: lightning is not offered for this training and global batch; offered: transformers" in error
