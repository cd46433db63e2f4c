"""`python -m engine estimate`: from words to a table, JSON or events."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.cli.estimate import frontiers
from engine.cli.main import main
from engine.cli.printing.estimate_table import table
from engine.cli.printing.what_ifs import frontier_lines
from engine.errors import SpecError
from engine.estimate import estimator, gpus, known_errors
from engine.estimate.estimator import Estimator
from engine.estimate.replay import Replays
from engine.estimate.spec import EstimateSpec
from engine.estimate.types import Estimate
from engine.settings.spec import RunSpec
from engine.text.from_json import from_json
from engine.text.units import GIB, MIB
from tests.engine.estimate.synthetic_models import model

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def traces(monkeypatch):
    """How the cards were traced, in place of tracing them."""
    traced = []

    def conditions_for(gpu, precision):
        return "cpu" if gpu is None else (gpu.compute_capability or (9, 0)) >= (8, 0)

    def replays_for(self, gpu):
        conditions = conditions_for(gpu, self._spec.precision)
        if conditions not in self._replays:
            traced.append(gpu)
            self._replays[conditions] = Replays(model(), self._spec.expandable_segments)
        return self._replays[conditions]

    def replays_of_one_size(spec, gpu):
        return Replays(model(sample_bytes=spec.input_size * MIB))

    monkeypatch.setattr(Estimator, "_replays_for", replays_for)
    monkeypatch.setattr(estimator, "_replays_of_one_size", replays_of_one_size)
    return traced


def run(capsys, *arguments):
    status = main(["estimate", *arguments])
    written = capsys.readouterr()
    return SimpleNamespace(status=status, out=written.out, err=written.err)


def test_one_card_is_one_json_document_of_the_promised_form(traces, capsys):
    document = json.loads(run(capsys, "bert-tiny", "--gpu", "a100-40gb", "--json").out)
    assert {
        "schema",
        "spec",
        "gpu",
        "largest_batch_size",
        "safe_batch_size",
        "at",
        "limits",
        "seconds",
        "versions",
    } <= (document.keys())
    assert {"name", "total_bytes", "context_bytes", "calibrated"} <= document["gpu"].keys()
    assert json.loads(json.dumps(from_json(Estimate, document).to_dict())) == document


def test_all_cards_are_a_list_from_one_trace_for_each_kind(traces, capsys):
    documents = json.loads(run(capsys, "bert-tiny", "--gpu", "all", "--json").out)
    assert [document["gpu"]["id"] for document in documents] == list(gpus.gpus())
    assert len(traces) == 2


def test_cards_that_cannot_do_the_precision_are_left_out_and_named(traces, capsys):
    done = run(capsys, "bert-tiny", "--gpu", "t4,a10", "--precision", "tf32", "--json")
    assert [document["gpu"]["id"] for document in json.loads(done.out)] == ["a10"]
    assert "left out: precision: tf32 needs" in done.err


def test_the_table_says_that_nothing_was_measured(traces, capsys):
    text = run(capsys, "bert-tiny", "--gpu", "a10", "--batch-size", "48").out
    assert "ESTIMATE, nothing was measured" in text
    assert "48" in text
    assert "Known error" in text


def test_the_table_of_all_gpus_fits_80_columns_in_its_stated_order(traces, capsys):
    lines = run(capsys, "bert-tiny", "--gpu", "all").out.splitlines()
    rows = [line for line in lines if line.startswith(("GPU ", "NVIDIA ", "AMD "))]
    assert len(rows) == len(gpus.gpus()) + 1
    assert max(map(len, rows)) <= 80
    memory = [float(re.search(r"([\d.]+) GiB", row)[1]) for row in rows[1:]]
    assert memory == sorted(memory)
    assert "Rows: the least memory first." in lines
    assert len(next(line for line in lines if line.startswith("Known error"))) <= 80


def test_the_time_is_that_of_all_cards_together(traces, capsys, monkeypatch):
    def estimate_slowly(self, *given, **others):
        time.sleep(0.2)
        return estimate(self, *given, **others)

    estimate = Estimator._estimate
    monkeypatch.setattr(Estimator, "_estimate", estimate_slowly)
    done = run(capsys, "bert-tiny", "--gpu", "a10,v100-16gb,a100-40gb")
    assert float(re.search(r"Took ([\d.]+) s\.", done.out)[1]) >= 0.6


def test_a_size_at_which_the_search_stops_is_no_finding(traces, capsys):
    text = run(capsys, "bert-tiny", "--gpu", "a10", "--max", "32").out
    row = next(line for line in text.splitlines() if line.startswith("NVIDIA A10 "))
    assert row.split("GiB")[1].split()[:2] == ["32+", "32+"]
    assert "32+: 32 or more, the largest that was tried (--max)." in text
    assert "that was tried" not in run(capsys, "bert-tiny", "--gpu", "a10").out


def test_why_an_estimate_is_approximate_stands_in_its_document_and_its_table(monkeypatch, capsys):
    made = replace(model(), method="approximate_fake_cpu", approximate_because="this is a test")
    monkeypatch.setattr(Estimator, "_replays_for", lambda self, gpu: Replays(made))
    assert json.loads(run(capsys, "bert-tiny", "--gpu", "a10", "--json").out)["approximate_because"] == "this is a test"
    assert (
        "APPROXIMATE, the CPU's own steps were traced, because this is a test"
        in run(capsys, "bert-tiny", "--gpu", "a10").out
    )


def test_no_card_can_be_found_while_it_estimates(traces, capsys, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    seen = []
    monkeypatch.setattr(Estimator, "_estimate", lambda *_, **__: seen.append(os.environ["CUDA_VISIBLE_DEVICES"]))
    with pytest.raises(AttributeError):  # it made no estimate
        run(capsys, "bert-tiny", "--gpu", "a10")
    assert seen == [""]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0"


def test_a_card_may_be_given_by_its_memory_alone(traces, capsys):
    document = json.loads(run(capsys, "bert-tiny", "--memory", "24GiB", "--json").out)
    assert document["gpu"]["total_bytes"] == 24 * GIB


def test_the_cpu_has_no_allocator(traces, capsys):
    document = json.loads(run(capsys, "bert-tiny", "--gpu", "cpu", "--memory-limit", "2GiB", "--json").out)
    assert document["gpu"]["id"] == "cpu"
    assert {at["peak_reserved_bytes"] for at in document["at"]} == {None}
    assert document["limit_bytes"] == 2 * GIB


def test_the_portal_reads_events_that_end_in_a_result(traces, capsys):
    spec = json.dumps(EstimateSpec(RunSpec("bert-tiny"), "l4").to_dict())
    lines = run(capsys, "--spec", spec, "--events").out.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == [
        "started", "phase", "estimate", "phase", "result",
    ]  # fmt: skip
    assert [made["gpu"]["id"] for made in events[-1]["result"]["estimates"]] == ["l4"]


@pytest.mark.parametrize(
    ("arguments", "field", "expected"),
    [
        (["bert-tiny"], "gpu", "give a GPU"),
        (["bert-tiny", "--gpu", "a10", "--memory", "24GiB"], "gpu", "give a GPU"),
        (["bert-tiny", "--memory", "a lot"], "memory", "not a size"),
        (["bert-tiny", "--memory", "3B"], "memory", "no GPU's memory"),
        (["bert-tiny", "--gpu", "a10", "--batch-size", "0"], "batch_size", "out of range"),
        (["bert-tiny", "--gpu", "a10", "--memory-limit", "99GiB"], "memory_limit_bytes", "above what"),
        (["--gpu", "a10", "--spec", "{"], "spec", "not valid JSON"),
        (["bert-tiny", "--gpu", "a10", "--spec", "{}"], "spec", "replaces all"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_field(traces, capsys, arguments, field, expected):
    done = run(capsys, *arguments, "--events")
    assert done.status == 2
    error = json.loads(done.out.splitlines()[-1])["error"]
    assert error["field"] == field
    assert expected in error["message"]


@pytest.mark.parametrize(("part", "family"), known_errors.KNOWN)
def test_the_known_errors_are_those_that_the_benchmark_found(part, family):
    results = json.loads((ROOT / "benchmarks/results/prediction_error.json").read_text())
    found, known = results[part]["summary"][family], known_errors.KNOWN[part, family]
    assert known.runs == found["runs"]
    assert known.worst_fraction == pytest.approx(found["worst_fraction"], abs=1e-4)
    assert known.typical_fraction == pytest.approx(found["typical_fraction"], abs=1e-4)


@pytest.mark.parametrize(("family", "setting"), known_errors.PUBLISHED)
def test_the_known_errors_of_published_trainings_are_those_that_the_benchmark_found(family, setting):
    summary = json.loads((ROOT / "benchmarks/results/published_trainings.json").read_text())["summary"]
    found, known = summary[family][setting], known_errors.PUBLISHED[family, setting]
    assert known.runs == found["runs"]
    for name in ("typical_fraction", "worst_fraction", "low_fraction"):
        assert getattr(known, name) == pytest.approx(found[name], abs=1e-4)
    assert {(of, each) for of in summary for each in summary[of]} == {
        *known_errors.PUBLISHED,
        *((of, known_errors.ANY_SETTING) for of in summary),
    }


@pytest.mark.slow
def test_a_real_estimate_of_the_whole_catalogue_from_the_command_line():
    command = [sys.executable, "-m", "engine", "estimate", "bert-tiny", "--gpu", "all", "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    documents = json.loads(done.stdout)
    assert len(documents) >= 25
    assert {document["method"] for document in documents} == {"fake_cuda"}
    assert all(0 < document["safe_batch_size"] <= document["largest_batch_size"] for document in documents)


def test_what_to_change_is_printed_with_the_smallest_change_first(traces, capsys):
    text = run(capsys, "bert-tiny", "--memory", "4GiB", "--batch-size", "512", "--what-to-change").out
    assert "WHAT TO CHANGE so that batch 512 fits" in text
    assert text.index("  1. 4 micro-batches of 128: the same optimizer step") < text.index("Speed is not estimated")


def test_what_to_change_is_part_of_the_json_document(traces, capsys):
    arguments = ("bert-tiny", "--memory", "4GiB", "--batch-size", "512", "--what-to-change", "first", "--json")
    found = json.loads(run(capsys, *arguments).out)["what_to_change"]
    assert found["advice"] == ["4 micro-batches of 128"]
    assert found["scope"] == "first"


def test_what_to_change_is_refused_for_several_cards(traces, capsys):
    refused = run(capsys, "bert-tiny", "--gpu", "all", "--what-to-change")
    assert refused.status == SpecError.exit_status
    assert "--what-to-change" in refused.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--frontier", "64,x"], "is no list of sizes such as 128,256,512"),
        (["--frontier", "64"], "give 2 to 16 different sizes"),
        (["--frontier", "64,128", "--batch-size", "4"], "takes no --batch-size and no --what-to-change"),
        (["--frontier", "64,4096"], "--frontier: --sequence-length: "),
    ],
)
def test_frontier_that_cannot_be_estimated_names_what_is_allowed(capsys, options, message):
    assert main(["estimate", "bert-tiny", "--gpu", "a10", *options]) == SpecError.exit_status
    assert message in capsys.readouterr().err


def test_frontier_is_part_of_the_result_that_the_portal_reads(traces, capsys):
    text = run(capsys, "bert-tiny", "--memory", "4GiB", "--frontier", "128,64", "--events").out
    events = [json.loads(line) for line in text.splitlines()]
    result = events[-1]["result"]
    assert len(result["estimates"]) == 1
    assert [row["input_size"] for row in result["frontier"]["rows"]] == [64, 128]
    assert result["frontier"]["text"].startswith("Budget: ")
    stages = [event["stage"] for event in events if event["event"] == "stage"]
    assert stages == ["size 1 of 2: 64", "size 2 of 2: 128"]


def test_frontier_in_events_is_for_one_card(traces, capsys):
    refused = run(capsys, "bert-tiny", "--gpu", "all", "--frontier", "64,128", "--events")
    assert refused.status == SpecError.exit_status
    assert "frontier: is for one GPU" in refused.err


def test_the_largest_value_is_the_answer_in_the_first_line(traces, capsys):
    lines = run(capsys, "gpt2-lm", "--memory", "1GiB", "--largest", "sequence-length").out.splitlines()
    assert lines[1].startswith("ESTIMATE for a GPU with 1.0 GiB: at batch 1, ")
    assert " tokens fit with the margin of 21.9 %; " in lines[1]
    assert "128 tokens" not in lines[3]
    assert any(" tokens " in line and line.endswith("does not fit") for line in lines[4:])


def test_the_largest_value_is_searched_at_the_batch_size_that_is_given(traces, capsys):
    options = ("gpt2-lm", "--memory", "1GiB", "--largest", "sequence-length")
    for given in (("--batch-size", "4"), ("--current-batch-size", "4")):
        assert "at batch 4, " in run(capsys, *options, *given).out


def test_the_largest_value_is_part_of_the_result_that_the_portal_reads(traces, capsys):
    text = run(capsys, "gpt2-lm", "--memory", "1GiB", "--largest", "sequence-length", "--events").out
    events = [json.loads(line) for line in text.splitlines()]
    found = events[-1]["result"]["largest"]
    assert found["value"] < found["too_large"] <= found["value"] * 1.07
    stages = [event["stage"] for event in events if event["event"] == "stage"]
    assert stages[0].startswith("value 1 of about 4: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--gpu", "a10", "--largest", "image-size"], "has no --image-size; it takes --sequence-length"),
        (["--gpu", "all", "--largest", "model"], "--largest: is for one GPU"),
        (["--gpu", "a10", "--largest", "model", "--frontier", "64,128"], "cannot be given together"),
    ],
)
def test_a_largest_value_that_cannot_be_searched_names_what_is_allowed(traces, capsys, options, message):
    refused = run(capsys, "bert-tiny", *options)
    assert (refused.status, message in refused.err) == (SpecError.exit_status, True), refused.err


def test_all_gpus_fit_80_columns_of_a_terminal_and_no_value_is_cut_in_a_pipe(traces, capsys):
    made = [from_json(Estimate, each) for each in json.loads(run(capsys, "bert-tiny", "--gpu", "all", "--json").out)]
    narrow, piped = (table(made, 1.0, width=width).splitlines() for width in (80, None))
    assert max(map(len, narrow)) <= 80
    rows = [next(line for line in piped if line.startswith(f"{each.gpu.name}  ")) for each in made]
    assert {row.split()[-1] for row in rows} <= {"MiB", "GiB"}
    assert not any(mark in line for line in piped for mark in "│┃━─…")


def test_the_answer_of_an_estimate_stands_above_its_table(traces, capsys):
    one, several = (run(capsys, "bert-tiny", "--gpu", names).out.splitlines() for names in ("a10", "a10,l4"))
    assert one[1].startswith("ESTIMATE for NVIDIA A10: largest batch ")
    assert several[1].startswith("ESTIMATE: batch 16 fits with the margin on 2 of 2 GPUs. ")
    assert several[1].endswith("with the least memory: NVIDIA L4.")


def test_a_frontier_fits_80_columns_by_leaving_out_the_smallest_batch_sizes(traces):
    spec = RunSpec("bert-tiny")
    [found] = frontiers(spec, [gpus.find("b200")], (64, 128, 256), emit=lambda _: None)
    narrow, piped = frontier_lines(found, 80), frontier_lines(found, None)
    assert max(map(len, narrow)) <= 80
    sizes = [cell.batch_size for cell in found.rows[0].cells]
    assert all(f"at {size}" in piped[3] for size in sizes)
    assert f"at {sizes[-1]}" in "\n".join(narrow)
    assert any(line.startswith("Batch sizes below") for line in narrow)
