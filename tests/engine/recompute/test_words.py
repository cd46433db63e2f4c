"""Why, how and what else: a document says it in the engine's own sentences, and with the figures of its probes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from engine.kinds import find_contradictions
from engine.tune import run
from engine.tune.spec import TuneSpec
from tests.engine.honest_worker import HonestWorker, document_of
from tests.engine.quiet_machine import leave_the_machine_alone
from tests.engine.recompute.test_commands import made, made_up_start
from tests.engine.tune.test_allowed_sizes import document_of as document_of_starts
from tests.engine.tune.test_allowed_sizes import tuned as learned

FORGED = "use 4,096, it is 50x as fast as your 16"


def fields(document: dict[str, Any]) -> set[str]:
    return {each.field for each in find_contradictions(document)}


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    forged = copy.deepcopy(document)
    *way, last = path.split(".")
    part: Any = forged
    for step in way:
        part = part[int(step) if isinstance(part, list) else step]
    part[last] = value
    return forged


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A command whose speeds were not compared."""
    leave_the_machine_alone(monkeypatch)
    monkeypatch.setattr(run, "start", made_up_start)
    spec = TuneSpec(("python", "train.py", "{batch_size}"), memory_limit_bytes=4_000, compare_speed=False)
    return made(spec)


@pytest.fixture
def figures() -> dict[str, Any]:
    return document_of(HonestWorker(528))


@pytest.mark.parametrize(
    "reason",
    [
        FORGED,
        "each size was timed in a start of its own: use 4,096, it is 50x as fast as your 16",
        "speed not measured: a start could not be timed: 4,096 is 50x as fast as your 16",
        "speed not measured: the time budget ended after 3 of at least 6 pairs of starts: 50x as fast",
        "speed not measurable here now: 4096 is between 50x and 99x as fast as 16",
        "your 16 was not measured here: no speed to compare with",
        "speed not measured: the time budget ended after 7 of at least 6 pairs of starts",
        "one batch size was checked, and no speeds compared",
        "",
    ],
)
def test_a_reason_is_a_sentence_of_the_engine_and_true_of_the_starts(tuned: dict[str, Any], reason: str) -> None:
    assert fields(tuned) == set()
    assert "speed.reason" in fields(changed(tuned, "speed.reason", reason))


def test_a_model_gives_the_reasons_of_a_model() -> None:
    ended = document_of(HonestWorker(528, time_is_up_after=6))
    assert fields(ended) == set()
    for reason in (FORGED, "each size was timed in a start of its own: speeds of separate starts are not compared"):
        assert "speed.reason" in fields(changed(ended, "speed.reason", reason))


def test_figures_in_a_reason_are_those_of_the_rounds() -> None:
    noisy = document_of(HonestWorker(100, noise=0.4))
    reason = noisy["speed"]["reason"]
    assert "as fast as" in reason
    assert fields(noisy) == set()
    assert fields(changed(noisy, "speed.reason", f"5{reason}")) == {"speed.reason"}


@pytest.mark.parametrize(
    "note",
    [
        "independently verified by NVIDIA: 50x as fast",
        "whole run: independently verified by NVIDIA: 50x as fast",
        "the peak of 2.0 KiB is in the lab of NVIDIA",
        "the peak of 3.0 KiB is between the steps",
        "the host itself ran out of memory before the limit was reached",
        "the limit is an earlier run's, on the same device with the same environment: only the speeds are new",
        "a data set was not looked through (ValueError: 4,096 is 50x as fast as your 16)",
    ],
)
def test_a_note_is_of_sentences_of_the_engine(tuned: dict[str, Any], note: str) -> None:
    for given in (note, f"no checkpoint was saved; {note}"):
        assert fields(changed(tuned, "boundary.note", given)) == {"boundary.note"}


def test_what_a_training_was_seen_to_do_may_be_noted_once(tuned: dict[str, Any]) -> None:
    note = "whole run: all 5,000 rows looked through have the same size; no checkpoint was saved"
    assert fields(changed(tuned, "boundary.note", f"{note}; {tuned['training']['peak']}")) == set()
    assert fields(changed(tuned, "boundary.note", f"{note}; {note}")) == {"boundary.note"}


def test_the_sizes_that_a_script_seems_to_take_are_noted_by_the_starts_that_failed() -> None:
    document = document_of_starts(learned(lambda size: 512 % size == 0, most_for_memory=150)[1])
    note = document["boundary"]["note"]
    assert "the script seems to take powers of two only: " in note
    assert fields(document) == set()
    for given in (
        note.replace("powers of two", "multiples of 7"),
        note.replace("only: ", "only: 3 and "),
        f"{note.partition(' ended with ')[0]} ended with 50x as fast",
        f"{note.partition(' ended with ')[0]} ended with NvidiaSaysSo",
    ):
        assert fields(changed(document, "boundary.note", given)) == {"boundary.note"}


@pytest.mark.parametrize("note", [FORGED, "no checkpoint was saved"])
def test_a_model_notes_only_what_its_probes_show_and_an_earlier_limit(figures: dict[str, Any], note: str) -> None:
    assert fields(changed(figures, "boundary.note", note)) == {"boundary.note"}


def test_a_method_is_that_of_the_engine(figures: dict[str, Any], tuned: dict[str, Any]) -> None:
    for document in (figures, tuned):
        assert fields(changed(document, "speed.method", "as NVIDIA measures")) == {"speed.method"}
    assert fields(changed(tuned, "speed.method", figures["speed"]["method"])) == {"speed.method"}


@pytest.mark.parametrize("peak", [FORGED, "the peak of 99.0 GiB is between the steps"])
def test_what_held_the_peak_is_said_as_the_engine_says_it_with_the_bytes_of_the_probe(
    tuned: dict[str, Any], peak: str
) -> None:
    assert "training.peak" in fields(changed(tuned, "training.peak", peak))


@pytest.mark.parametrize(
    ("others", "cores", "field"),
    [(1e30, 2, "speed.others_cores"), (2.5, 2, "speed.others_cores"), (-1.0, 2, "speed.others_cores")]
    + [
        (1.0, -3, "speed.cores"),
        (0.0, 0, "speed.cores"),
        (1.0, 10**6, "speed.cores"),
        (1.0, None, "speed.others_cores"),
    ],
)
def test_other_work_uses_no_more_cores_than_there_are(
    figures: dict[str, Any], others: float, cores: int | None, field: str
) -> None:
    figures["speed"] |= {"others_cores": others, "cores": cores}
    assert field in fields(figures)


def test_a_block_has_no_more_other_work_than_any_machine(figures: dict[str, Any]) -> None:
    for others in (-1.0, 1e30):
        path = "speed_rounds.0.blocks.0.others_cores"
        assert fields(changed(figures, path, others)) == {"speed_rounds[0].blocks[0].others_cores"}


def test_more_other_work_than_cores_by_the_ticks_of_a_clock_is_all_cores() -> None:
    busy = document_of(HonestWorker(100, others_cores=640.0))
    assert busy["speed"]["others_cores"] == busy["speed"]["cores"]
    assert fields(busy) == set()


def test_a_figure_is_claimed_with_its_interval_or_not_at_all(figures: dict[str, Any]) -> None:
    assert figures["speed"]["claim"] == "figure"
    for name in ("speedup", "speedup_low", "speedup_high", "recommended", "current", "batch_size_ratio"):
        assert name in fields({**figures, name: None})
    for name in ("per_run_usd", "per_run_usd_low", "per_year_usd_high"):
        assert f"savings.{name}" in fields(changed(figures, f"savings.{name}", None))


def test_a_lower_bound_is_claimed_with_its_interval() -> None:
    workers = (HonestWorker(528, noise=0.4 + 0.1 * seed, seed=seed) for seed in range(12))
    bound = next(each for each in map(document_of, workers) if each["speed"]["claim"] == "at_least")
    assert fields(bound) == set()
    for name in ("speedup_low", "speedup_high", "recommended"):
        assert name in fields({**bound, name: None})
    assert "speed.claim" in fields(changed(bound, "speed.claim", None))


def test_a_document_that_says_nothing_of_speeds_claims_nothing_by_them(figures: dict[str, Any]) -> None:
    assert {"speedup", "speedup_low", "recommended", "largest.samples_per_second"} <= fields({**figures, "speed": None})


def test_each_size_that_trained_has_one_throughput_at_most(tuned: dict[str, Any]) -> None:
    """30,000 rows were stored: a page of 5.3 MB."""
    one = tuned["training"]["throughputs"][0]
    for more in ([one], [{**one, "batch_size": 999_999, "samples_per_second": None}], [one] * 30_000):
        document = changed(tuned, "training.throughputs", [*tuned["training"]["throughputs"], *more])
        assert fields(document) == {"training.throughputs"}
        assert len(json.dumps(find_contradictions(document)[0].claimed)) < 1_000


def test_starts_are_those_of_the_probes_and_of_one_comparison(tuned: dict[str, Any]) -> None:
    tuned["training"]["starts"] += [[16, 1.0]] * 25
    tuned["timings"]["processes"] += 25
    assert "timings.processes" in fields(tuned)


@pytest.mark.parametrize("files", [["a"] * 201, ["x" * 1_001], ["a\nb"], [" "], ["\u202ea"]])
def test_files_that_were_written_are_few_and_their_names_lines(tuned: dict[str, Any], files: list[str]) -> None:
    (field,) = fields(changed(tuned, "training.changed_files", files))
    assert field.startswith("training.changed_files")


def test_a_document_of_an_earlier_version_may_name_the_hosts_of_its_ranks(tuned: dict[str, Any]) -> None:
    tuned["training"]["rank_hosts"] = ["a"]
    assert fields(tuned) == set()


@pytest.mark.parametrize("name", ["device", "kind", "name", "uuid", "driver", "compute_capability"])
@pytest.mark.parametrize("text", ["", "  ", "A card\nUse 4,096", "x" * 300, "\u202eA card", "A\tcard"])
def test_texts_of_a_device_are_one_printable_line(figures: dict[str, Any], name: str, text: str) -> None:
    assert f"device.{name}" in fields(changed(figures, f"device.{name}", text))


def test_other_processes_of_a_device_are_bounded_too(figures: dict[str, Any]) -> None:
    for processes in ([{"pid": 1}] * 1_001, [{"pid": 1, "name": "a\nb"}], [{"name": 7}]):
        given = changed(figures, "device.foreign_processes", processes)
        assert any(each.startswith("device.foreign_processes") for each in fields(given))
