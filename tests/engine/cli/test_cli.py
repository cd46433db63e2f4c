"""The command line: its output forms, its exit codes, its words for bad input."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.cli.printing.result_text import answer_lines, details, say_result, summary
from engine.describe.boundary import certificate
from engine.describe.time_left.phase_facts import event_line
from engine.facts.intervals import Interval
from engine.facts.result import (
    Boundary,
    DeviceFacts,
    Outcome,
    Point,
    Probe,
    Reason,
    RecommendedBy,
    RunResult,
    Savings,
    Speed,
    Timings,
    Waste,
)
from engine.facts.savings import savings
from engine.facts.speed_rounds import ComparedSizes, SpeedClaim
from engine.settings.spec import RunSpec
from engine.text.units import GIB

ROOT = Path(__file__).resolve().parents[3]
TOP_LEVEL = {
    "schema", "spec", "device", "boundary", "largest", "recommended", "fastest", "current", "waste", "speedup",
    "batch_size_ratio", "savings", "probes", "environment", "timings", "estimate", "estimate_error",
    "speed", "speedup_low", "speedup_high", "kinds",
    "fits", "memory_breakdown", "speed_rounds", "largest_with_reserve",
}  # fmt: skip


def engine(*arguments: str, told: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False, input=told)


@pytest.fixture(scope="module")
def measured() -> subprocess.CompletedProcess[str]:
    return engine(
        "bert-tiny", "cpu", "--memory-limit", "100MiB", "--sequence-length", "64", "--json", "--current-batch-size", "4"
    )


@pytest.mark.slow
def test_json_is_one_document_with_the_promised_keys(measured):
    assert measured.returncode == 0
    document = json.loads(measured.stdout)
    assert set(document) == TOP_LEVEL
    assert {"largest_batch_size", "certified", "refused_batch_size", "reason"} <= set(document["boundary"])
    assert {"batch_size", "samples_per_second", "peak_allocated_bytes"} <= set(document["largest"])
    assert document["speed"]["claim"] in [*SpeedClaim], "other work may disturb it"


@pytest.mark.slow
def test_a_real_run_is_certified_by_its_own_probes(measured):
    document = json.loads(measured.stdout)
    boundary, limit = document["boundary"], 100 * 2**20
    by_size = {p["batch_size"]: p for p in document["probes"] if p["purpose"] not in ("curve", "timing")}
    assert boundary["certified"]
    assert by_size[boundary["largest_batch_size"]]["peak_allocated_bytes"] <= limit
    assert by_size[boundary["refused_batch_size"]]["peak_allocated_bytes"] > limit
    assert document["current"]["batch_size"] == 4


@pytest.mark.slow
def test_events_are_json_lines_and_a_model_that_does_not_fit_exits_with_3():
    spec = {"model": "bert-tiny", "device": "cpu", "memory_limit_bytes": "70MiB"}
    done = engine("--spec", json.dumps(spec), "--events")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 3
    assert events[-1]["result"]["boundary"]["reason"] == "does_not_fit"
    assert all("seconds" in event for event in events)


@pytest.mark.slow
def test_a_run_is_taken_up_from_known_probes_and_its_result_is_in_the_file(measured, tmp_path):
    first = json.loads(measured.stdout)
    known = {name: first[name] for name in ("device", "environment", "probes")}
    path = tmp_path / "result.json"
    options = ("--spec", json.dumps(first["spec"]), "--events", "--resume", "-", "--result-file", str(path))
    events = [json.loads(line) for line in engine(*options, told=json.dumps(known)).stdout.splitlines()]
    assert json.loads(path.read_text()) == {"exit_status": 0, "result": events[-1]["result"]}
    assert events[-1]["result"]["boundary"] == first["boundary"]
    started = [event["purpose"] for event in events if event["event"] == "probe_started"]
    assert started[:2] == ["confirm", "soak"]
    assert set(started[2:]) <= {"timing"}


@pytest.mark.slow
@pytest.mark.parametrize("check", ["--validate", "--validate-backward"])
def test_a_check_without_enough_memory_exits_with_1_and_a_sentence(check):
    done = engine(check, "bert-tiny", "--device", "cpu", "--memory-limit", "70MiB", "--sequence-length", "512")
    assert done.returncode == 1
    assert "bert-tiny at batch 8 does not fit" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_spent_time_budget_exits_with_5():
    assert engine("bert-tiny", "cpu", "--memory-limit", "1GiB", "--time-budget", "1").returncode == 5


@pytest.mark.slow
def test_the_devices_of_this_machine_are_listed_as_json():
    done = engine("devices", "--json")
    assert json.loads(done.stdout)[-1]["device"] == "cpu"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["measure"], "model: is required, such as bert; `python -m engine list models` lists them"),
        (["measure", "nosuch"], "model: 'nosuch' is not offered; one of "),
        (["bert", "cpu", "--device", "cuda"], "given twice"),
        (["bert", "--memory-limit", "big"], "error: --memory-limit: 'big' is not a size"),
        (["--spec", "{nope"], "spec: is not valid JSON"),
        (["--spec", '{"model": "bert", "colour": 1}'], "colour: unknown key"),
        (["bert", "--spec", '{"model": "gpt2"}'], "spec: replaces all settings; leave out model"),
        (["--validate", "bert", "--validate-backward"], "No such option '--validate-backward'"),
        (["bert", "--resume", "-"], "--resume: requires --events or --json"),
        (["bert", "--result-file", "r.json"], "--result-file: requires --events or --json"),
        (["bert", "--json", "--resume", "probes.json"], "resume: must be -"),
    ],
)
def test_bad_input_exits_with_2_and_names_the_field(arguments, words, capsys):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("told", "words"), [("", "is not valid JSON"), ("[1", "is not valid JSON"), ("{}", "is not device, environment")]
)
def test_known_probes_that_are_malformed_exit_with_2_and_an_event_that_names_the_field(
    told, words, capsys, monkeypatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO(told))
    assert main(["bert-tiny", "cpu", "--events", "--resume", "-"]) == 2
    event = json.loads(capsys.readouterr().out)
    assert (event["event"], event["error"]["field"], event["seconds"] >= 0) == ("error", "resume", True)
    assert words in event["error"]["message"]


def result(**changes) -> RunResult:
    point = Point(40, 250.0, 0.16, 20 * GIB, 22 * GIB, 22 * GIB)
    fields = {
        "spec": RunSpec("bert"),
        "device": DeviceFacts("cuda:0", "cuda", "NVIDIA A10", 24 * GIB),
        "boundary": Boundary(48, True, 49, Reason.OUT_OF_MEMORY, soak_steps=20),
        "largest": point,
        "fastest": point,
        "recommended": point,
        "current": point,
        "waste": Waste(24 * GIB, None, None, int(1.9 * GIB), 0.08),
        "speedup": 2.5,
        "batch_size_ratio": 2.5,
        "savings": Savings(0.4, 2.0, 100, 0.8, 0.48, 48.0),
        "probes": (),
        "environment": {},
    }
    return RunResult(**fields | changes)


def test_the_samples_of_a_step_are_said_where_gradients_are_accumulated():
    said = details(result(spec=RunSpec("bert", accumulation_steps=4)))
    assert "An optimizer step: 4 x 40 = 160 samples." in said
    assert "160 samples an optimizer step exactly: 40 x 4" in said  # the advice keeps it
    assert "An optimizer step" not in details(result())


def test_the_closing_block_is_the_contract_s_to_the_letter():
    assert summary(result()) == "\n".join(
        [
            "============================================================",
            "■ MemoryMark Results - BERT on CUDA",
            "============================================================",
            "Optimal batch size: 40",
            "Current batch size: 16",
            "Waste: 1.9GB (8.0%)",
            "Speedup: 2.5x",
            "Savings: $0.48/run, $48.00/year",
            "============================================================",
        ]
    )


def with_speed(low: float, value: float, high: float, **speed) -> RunResult:
    spec = RunSpec("bert")
    money = savings(spec, Interval(low, value, high))
    said = Speed(True, None, RecommendedBy.SPEED, 0.05, rounds=6, **speed)
    return result(speedup=value, speedup_low=low, speedup_high=high, savings=money, speed=said)


def test_the_speed_up_and_the_money_come_with_their_intervals_and_assumptions():
    said = details(with_speed(1.36, 1.39, 1.42, others_cores=1.6, cores=2))
    assert "assuming $0.60/h, 2 h a run, 100 runs a year: $33.67/year [$31.76, $35.49]." in said
    assert "Timed in 6 rounds (95% interval)." in said


def test_a_lower_bound_is_said_as_one_in_the_answer_the_lines_and_the_block():
    spec, ends = RunSpec("bert"), Interval(1.96, 2.7, 3.81)
    said = Speed(
        False, "the least", RecommendedBy.SPEED, 0.05, rounds=6, others_cores=1.6, cores=2, claim=SpeedClaim.AT_LEAST
    )
    money = savings(spec, ends, is_bound=True)
    bound = result(speedup=None, speedup_low=ends.low, speedup_high=ends.high, savings=money, speed=said)
    assert answer_lines(bound) == [
        "Use batch size 40: at least 1.9x as fast as batch size 16.",
        "Batch size 16 trains an epoch in at least 1.9 times the time of 40. "
        "bert trains with up to 48 samples in 24.0 GiB of NVIDIA A10. "
        "Measured 1.9 to 3.9x as fast; other programs used 1.6 of 2 cores.",
    ]
    assert "100 runs a year: at least $58.77/year [$58.77, $88.51]." in details(bound)
    assert "Optimal batch size: 40\n" in summary(bound)
    assert "Speedup: at least 1.9x\nSavings: at least $0.58/run, $58.77/year\n" in summary(bound)


def test_without_a_claim_nothing_is_optimal_and_the_size_with_the_reserve_has_a_line():
    sizes = ComparedSizes(40, 16, 0.8, 13.0)
    said = Speed(
        False, None, RecommendedBy.NOTHING, 0.05, seconds=9.0, claim=SpeedClaim.NOTHING, compared=sizes, rounds=9
    )
    point, nothing = result().largest, savings(RunSpec("bert"), None)
    fields = {"recommended": None, "fastest": None, "speedup": None, "savings": nothing, "speed": said}
    unknown = result(**fields, waste=Waste(GIB, None, None, None, None), largest_with_reserve=point)
    first, second = answer_lines(unknown)
    assert first == "Up to 48 fit. None is recommended."
    assert "40 is 0.80 to 13.00x as fast as batch size 16." in second
    assert "The largest that keeps the reserve (5 % free) is 40." in second
    text = details(unknown)
    assert "With reserve:    40    22.0 GiB" in text
    assert "Recommended:" not in text
    assert "Waste: not measured\nSpeedup: not known\nSavings: not known" in summary(unknown)
    assert "Optimal batch size: none recommended; up to 48 fit\n" in summary(unknown)


def test_a_run_out_of_time_has_no_optimal_size():
    said = Speed(False, "the run ended before the speeds were compared", RecommendedBy.NOTHING, 0.05)
    boundary = Boundary(22, False, None, Reason.TIME_BUDGET)
    late = result(recommended=None, speedup=None, boundary=boundary, speed=said, savings=savings(RunSpec("bert"), None))
    assert (
        answer_lines(late)[0] == "At least 22 fit. None is recommended: the run ended before the speeds were compared."
    )
    assert "Optimal batch size: none recommended; at least 22 fit\n" in summary(late)


def test_the_block_says_that_todays_size_does_not_fit_and_how_far_it_goes():
    """14 was certified and 16 did not fit, and the block said "not measured" twice."""
    refused = Probe(16, Outcome.OUT_OF_MEMORY)
    boundary = Boundary(14, True, 15, Reason.OUT_OF_MEMORY, soak_steps=5)
    over = result(recommended=None, current=None, boundary=boundary, probes=(refused,))
    assert "Optimal batch size: none recommended; up to 14 fit, 16 does not\n" in summary(over)


def test_what_took_no_time_or_was_not_timed_has_no_zero():
    timings = Timings(total_seconds=34.0, search_seconds=20.0, curve_seconds=14.0, processes=7)
    assert "Took 34.0 s in 7 processes: search 20.0 s, curve 14.0 s." in details(result(timings=timings))
    assert "Took" not in details(result())


def test_a_size_without_a_speed_says_nothing_of_speed():
    point = replace(result().largest, samples_per_second=None)
    assert "Largest:         40    22.0 GiB\n" in details(result(largest=point))


@pytest.mark.parametrize(
    ("boundary", "words"),
    [
        (Boundary(48, True, 49, Reason.OUT_OF_MEMORY, soak_steps=20), "48 trained 20 steps in a fresh process; 49 ran"),
        (Boundary(0, True, 1, Reason.DOES_NOT_FIT, "tried 2 GiB"), "batch 1 ran out of memory (tried 2 GiB)"),
        (Boundary(48, False, 49, Reason.SIZE_LIMIT, "INT_MAX"), "not memory (INT_MAX)"),
        (Boundary(64, False, None, Reason.MAX_BATCH_SIZE), "largest size allowed"),
        (Boundary(None, False, None, Reason.TIME_BUDGET), "no batch size trained; the time budget ended"),
    ],
)
def test_every_boundary_has_a_true_sentence(boundary, words):
    assert words in certificate(result(boundary=boundary))


def test_a_model_that_does_not_fit_is_told_how_much_it_needed_and_what_may_help():
    refusal = Probe(
        1,
        Outcome.OUT_OF_MEMORY,
        error_type="BudgetExceeded",
        peak_allocated_bytes=2 * GIB,
        failed_phase="optimizer_step",
    )
    device = DeviceFacts("cpu", "cpu", "A CPU", 8 * GIB, limit_bytes=GIB)
    boundary = Boundary(0, True, 1, Reason.DOES_NOT_FIT, "over the limit")
    said = details(result(device=device, boundary=boundary, probes=(refusal,), largest=None))
    assert "Batch 1 needed at least 2.0 GiB in the optimizer step; 1.0 GiB were available." in said
    assert "\n  An optimizer with less state" in said
    assert "checkpointing" not in said


def test_a_probe_s_line_tells_size_outcome_memory_and_speed():
    fits = Probe(16, Outcome.FITS, peak_allocated_bytes=2**30, samples_per_second=98.76)
    assert event_line({"event": "probe", "probe": fits.to_dict()}) == "batch 16 fits: 1.0 GiB, 98.8 samples/s"
    refused = Probe(17, Outcome.OUT_OF_MEMORY, failed_phase="backward")
    assert event_line({"event": "probe", "probe": refused.to_dict()}) == "batch 17: out of memory in backward"


def test_the_answer_comes_first_the_details_next_and_the_block_last(capsys):
    say_result(result(), ["Throughput of each size, in a start of its own:"])
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[1 : len(answer_lines(result())) + 1] == answer_lines(result())
    texts = (answer_lines(result())[0], "Certified: 48", "Throughput of", "■ MemoryMark")
    order = [printed.index(text) for text in texts]
    assert order == sorted(order)
    assert printed.endswith(f"{summary(result())}\n")


@pytest.mark.slow
def test_a_validation_prints_its_phases_and_nothing_of_torch_s_profiler():
    done = engine("validate", "bert-tiny", "cpu", "--batch-size", "1", "--sequence-length", "8")
    assert done.returncode == 0
    assert "comparing gradients" in done.stderr
    assert "USDT" not in done.stderr
