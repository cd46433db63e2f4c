"""An interrupted sweep is taken up from its probes; its result is in a file, whole or not at all."""

import io
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import SpecError
from engine.facts.result import DeviceFacts, Outcome, Probe, Purpose, Reason, RunResult
from engine.facts.result_file import result_in, write_result
from engine.questions.size import measure
from engine.search.resume import EarlierAttempt
from engine.settings.spec import RunSpec
from tests.engine.fake_worker import FakeWorker
from tests.engine.synthetic_devices import KINDS, Device, make_device

SPEC = RunSpec("bert-tiny", max_batch_size=2**20)
OF_SEARCH = (Purpose.SEARCH, Purpose.CONFIRM)


def earlier_attempt(probes, worker: FakeWorker, **changes) -> EarlierAttempt:
    return EarlierAttempt(replace(worker.device, **changes), worker.environment, tuple(probes))


def run(worker: FakeWorker, probes=(), *, events=None, spec: RunSpec = SPEC, **changes) -> RunResult:
    emit = (events if events is not None else []).append
    return measure(spec, emit, worker=worker, earlier=earlier_attempt(probes, worker, **changes), estimates=False)


def line(boundary: int) -> Device:
    return Device(lambda size: 1000 + 10 * size, lambda size: size <= boundary, 1005 + 10 * boundary, boundary)


def searched(probes) -> int:
    return sum(p.purpose in OF_SEARCH for p in probes)


def is_proved_now(result: RunResult, carried: int) -> bool:
    """Whether both sizes of the certificate were run in fresh processes of this attempt."""
    largest, refused = result.boundary.largest_batch_size, result.boundary.refused_batch_size
    fresh = {(p.batch_size, p.fits) for p in result.probes[carried:] if p.fresh_process}
    return (refused, False) in fresh and (largest == 0 or (largest, True) in fresh)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_cut_anywhere_ends_as_if_undisturbed_with_two_more_probes_of_the_search_at_most(kind):
    rng = random.Random(20_261_121)
    for device in [make_device(rng, kind) for _ in range(12)]:
        whole = run(FakeWorker(0, curve=device))
        for cut in range(len(whole.probes) + 1):
            worker = FakeWorker(0, curve=device)
            carried = len(earlier_attempt(whole.probes[:cut], worker).carried())
            resumed = run(worker, whole.probes[:cut])
            assert resumed.boundary == whole.boundary
            assert is_proved_now(resumed, carried)
            assert searched(resumed.probes[carried:]) <= searched(whole.probes[cut:]) + 2


def test_a_sweep_that_is_cut_after_every_second_probe_still_ends():
    probes, attempts = [], 0
    while (result := run(FakeWorker(528, time_is_up_after=2), probes)).boundary.reason is Reason.TIME_BUDGET:
        probes, attempts = [*result.probes], attempts + 1
        assert attempts < 20
    assert (result.boundary.largest_batch_size, result.boundary.refused_batch_size) == (528, 529)


def test_whatever_was_measured_on_a_device_that_held_another_size_the_answer_is_true():
    rng = random.Random(20_261_121)
    for _ in range(100):
        before, now = (round(10 ** rng.uniform(0, 4)) for _ in range(2))
        earlier = run(FakeWorker(before)).probes
        probes = earlier[: rng.randint(0, len(earlier))]
        worker = FakeWorker(0, curve=line(now))
        result = run(worker, probes)
        assert (result.boundary.largest_batch_size, result.boundary.certified) == (now, True), (before, now, probes)
        assert is_proved_now(result, len(earlier_attempt(probes, worker).carried()))
        assert len(worker.sizes) <= 50


def test_only_the_certificate_and_the_speeds_are_measured_again_when_everything_was_measured():
    whole = run(FakeWorker(528))
    resumed = run(FakeWorker(528), whole.probes)
    carried = [p for p in whole.probes if p.purpose not in (Purpose.SOAK, Purpose.TIMING)]
    again = resumed.probes[len(carried) :]
    assert [(p.batch_size, p.purpose) for p in again[:2]] == [(529, Purpose.CONFIRM), (528, Purpose.SOAK)]
    assert {p.purpose for p in again[2:]} == {Purpose.TIMING}
    assert (resumed.recommended, resumed.fastest, resumed.current) == (whole.recommended, whole.fastest, whole.current)


def timed_again(worker: FakeWorker, whole: RunResult, **changes) -> RunResult:
    earlier = replace(earlier_attempt(whole.probes, worker, **changes), boundary=whole.boundary)
    return measure(SPEC, worker=worker, earlier=earlier)


def test_a_run_that_is_timed_again_keeps_its_limit_and_compares_the_speeds_alone():
    whole = run(FakeWorker(528), spec=SPEC)
    worker = FakeWorker(528, step_seconds=lambda size: size / 100)
    again = timed_again(worker, whole)
    assert worker.sizes == []
    assert set(worker.timed) >= {whole.current.batch_size, whole.recommended.batch_size}
    assert (again.boundary.largest_batch_size, again.boundary.certified) == (528, True)
    assert "the limit is an earlier run's" in again.boundary.note
    assert again.current.samples_per_second == pytest.approx(100)
    kept = [p for p in whole.probes if p.purpose is not Purpose.TIMING]
    assert list(again.probes[: len(kept)]) == kept


def test_the_limit_s_origin_is_said_once_however_often_a_run_is_timed_again():
    again = timed_again(FakeWorker(528), run(FakeWorker(528)))
    assert timed_again(FakeWorker(528), again).boundary == again.boundary


def test_a_run_timed_again_on_another_device_proves_the_limit_anew():
    result = timed_again(FakeWorker(528), run(FakeWorker(528)), name="Another device")
    assert is_proved_now(result, 0)


def test_speeds_of_an_earlier_attempt_are_never_compared_with_those_of_now():
    slower = run(FakeWorker(528, step_seconds=lambda size: size / 10)).probes
    resumed = run(FakeWorker(528, step_seconds=lambda size: size / 100), slower)
    assert resumed.current.samples_per_second == pytest.approx(100)
    timed = [p.samples_per_second for p in resumed.probes if p.purpose is Purpose.TIMING]
    assert timed == [pytest.approx(100)] * len(timed)


def test_the_largest_size_that_is_refused_now_is_said_to_have_trained_earlier():
    fitted = [p for p in run(FakeWorker(528)).probes if p.purpose is Purpose.SEARCH]
    result = run(FakeWorker(0, curve=line(500)), fitted)
    assert result.boundary.largest_batch_size == 500
    assert "528 trained 3 steps in an earlier attempt, but not 5 in a row" in result.boundary.note


def test_today_s_batch_size_that_was_refused_and_fits_now_gets_its_figures():
    spec = replace(SPEC, start_batch_size=2, current_batch_size=100)
    refused = Probe(100, Outcome.OUT_OF_MEMORY, purpose=Purpose.CURVE)
    assert run(FakeWorker(528), [refused], spec=spec).current.samples_per_second is not None


def test_carried_probes_are_told_before_the_search_begins_and_counted():
    events: list[dict] = []
    probes = run(FakeWorker(528)).probes[:3]
    result = run(FakeWorker(528), probes, events=events)
    carried = [event["probe"] for event in events if event.get("is_carried")]
    assert carried == [p.to_dict() for p in probes]
    assert events[5]["event"] == "probe"
    words = "3 probes of an earlier attempt are carried over: same device, same environment"
    assert (events[6]["message"], events[7]["phase"]) == (words, "searching")
    assert result.timings.carried_seconds == 3


def test_soaks_confirmations_and_timings_are_not_carried_and_a_refusal_is_no_longer_fresh():
    refused = Probe(17, Outcome.OUT_OF_MEMORY, fresh_process=True)
    probes = [Probe(16, Outcome.FITS, purpose=p) for p in Purpose] + [refused, refused]
    carried = earlier_attempt(probes, FakeWorker(16)).carried()
    assert [p.purpose for p in carried[:-1]] == [Purpose.SEARCH, Purpose.CURVE]
    assert carried[-1] == replace(refused, fresh_process=False)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "cuda"},
        {"name": "Another"},
        {"uuid": "GPU-1"},
        {"capacity_bytes": 1},
        {"limit_bytes": 1},
        {"driver": "1.0"},
        {"compute_capability": "9.0"},
    ],
)
def test_on_another_device_the_sweep_starts_afresh_and_says_what_differs(change):
    events: list[dict] = []
    result = run(FakeWorker(528), run(FakeWorker(528)).probes, events=events, **change)
    [name] = change
    assert events[3]["message"] == f"an earlier attempt is not resumed: the device's {name} changed"
    assert result.timings.carried_seconds == 0
    assert result.probes == run(FakeWorker(528)).probes


def test_where_the_device_is_called_and_who_else_uses_it_may_change():
    events: list[dict] = []
    run(FakeWorker(528), [], events=events, device="cuda:1", foreign_used_bytes=7)
    assert "carried over" in events[3]["message"]


def test_another_environment_starts_afresh_and_every_difference_is_named():
    facts = DeviceFacts("cpu", "cpu", "A CPU", 1)
    before = EarlierAttempt(facts, {"torch": "2.0", "cuda": None, "host": "a"}, ())
    assert before.differences(facts, {"torch": "2.1", "host": "a", "hip": None}) == [
        "the environment's cuda",
        "the environment's hip",
        "the environment's torch",
    ]


def test_what_an_attempt_said_is_read_back_as_it_was():
    events: list[dict] = []
    probes = run(FakeWorker(528), events=events).probes
    [device] = [event for event in events if event["event"] == "device"]
    told = {name: device[name] for name in ("device", "environment")}
    read = EarlierAttempt.from_dict(
        {**told, "probes": [event["probe"] for event in events if event["event"] == "probe"]}
    )
    expected = earlier_attempt(probes, FakeWorker(528))
    assert (read.device, read.probes, read.boundary) == (expected.device, expected.probes, None)
    assert read.differences(expected.device, {**expected.environment, "host": read.environment["host"]}) == []


FITS = {"batch_size": 1, "outcome": "fits", "purpose": "search"}
BOUNDARY = {"largest_batch_size": 8, "certified": True, "refused_batch_size": 9, "reason": "out_of_memory"}
CPU = {"device": "cpu", "kind": "cpu", "name": "A CPU", "capacity_bytes": 1}


@pytest.mark.parametrize(
    "malformed",
    [
        [],
        {},
        {"device": {}, "environment": {}, "probes": []},
        {"device": CPU, "environment": [], "probes": []},
        {"device": CPU, "environment": {}, "probes": 3},
        {"device": CPU, "environment": {}, "probes": ["fits"]},
        {"device": CPU, "environment": {}, "probes": [], "boundary": {"largest_batch_size": 1}},
        {"device": CPU, "environment": {}, "probes": [], "boundary": {**BOUNDARY, "reason": "luck"}},
        {"device": CPU, "environment": {}, "probes": [], "boundary": {**BOUNDARY, "largest_batch_size": "8"}},
        *(
            {"device": CPU, "environment": {}, "probes": [{**FITS, **wrong}]}
            for wrong in (
                {"batch_size": 0},
                {"batch_size": "16"},
                {"batch_size": True},
                {"outcome": "fine"},
                {"purpose": None},
                {"colour": 1},
                {"peak_allocated_bytes": "1 GiB"},
                {"timed_step_seconds": [[1.0]]},
                {"memory_by_kind": {"parameters_bytes": 1}},
            )
        ),
    ],
)
def test_what_is_malformed_is_refused_and_the_field_named(malformed):
    with pytest.raises(SpecError, match="resume: ") as refused:
        EarlierAttempt.from_dict(malformed)
    assert refused.value.field == "resume"


def test_a_run_is_resumed_in_another_job_of_the_scheduler() -> None:
    worker = FakeWorker(70)
    before = {**worker.environment, "run_key": "a" * 32, "started_at": "2026-11-01T08:00:00+00:00", "slurm_job_id": "1"}
    earlier = EarlierAttempt(worker.device, before, ())
    assert earlier.differences(worker.device, {**worker.environment, "slurm_job_id": "2"}) == []
    assert earlier.differences(worker.device, {**worker.environment, "host": "other"}) == ["the environment's host"]


def run_into(keep, events=None):
    return measure(
        RunSpec("bert-tiny"),
        (events if events is not None else []).append,
        worker=FakeWorker(20),
        keep=keep,
        estimates=False,
    )


def test_the_file_holds_the_exit_status_and_the_result_that_is_said(tmp_path):
    events: list[dict] = []
    run_into(lambda result: write_result(tmp_path / "result.json", 3, result), events)
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept == {"exit_status": 3, "result": json.loads(json.dumps(events[-1]["result"]))}
    assert os.listdir(tmp_path) == ["result.json"]


def test_the_file_is_there_before_the_result_is_said(tmp_path):
    path, was_there = tmp_path / "result.json", {}
    measure(
        RunSpec("bert-tiny"),
        lambda event: was_there.update({event["event"]: path.exists()}),
        worker=FakeWorker(20),
        estimates=False,
        keep=lambda result: write_result(path, 0, result),
    )
    assert (was_there["probe"], was_there["result"]) == (False, True)


def test_contents_and_rename_are_forced_to_the_disk_in_that_order(tmp_path, monkeypatch):
    done: list[str] = []
    kinds = {True: "folder", False: "file"}
    monkeypatch.setattr(os, "fsync", lambda fd: done.append(f"fsync {kinds[os.path.isdir(f'/proc/self/fd/{fd}')]}"))
    rename = Path.replace
    monkeypatch.setattr(Path, "replace", lambda old, new: (done.append("rename"), rename(old, new)))
    run_into(lambda result: write_result(tmp_path / "result.json", 0, result))
    assert done == ["fsync file", "rename", "fsync folder"]


@pytest.mark.parametrize("path", ["/dev/full/result.json", "/nowhere/result.json"])
def test_a_file_that_cannot_be_written_is_a_warning_and_the_result_comes_all_the_same(path):
    events: list[dict] = []
    result = run_into(lambda result: write_result(Path(path), 0, result), events)
    [warning] = [event for event in events if event["event"] == "log" and event["level"] == "warning"]
    assert "could not be written to a file" in warning["message"]
    assert events[-1]["result"] == result.to_dict()


def test_a_full_disk_leaves_an_earlier_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("earlier")
    monkeypatch.setattr(os, "fsync", lambda fd: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    events: list[dict] = []
    run_into(lambda result: write_result(path, 0, result), events)
    assert path.read_text() == "earlier"
    assert any("No space left" in event.get("message", "") for event in events)


@pytest.mark.parametrize(
    "document", [{"spec": 1}, {"exit_status": 3, "result": {"spec": 1}}, {"id": 7, "result": {"spec": 1}}]
)
def test_a_result_alone_a_result_file_and_a_run_of_the_portal_hold_the_same_result(document):
    assert result_in(document, "result") == {"spec": 1}


@pytest.mark.parametrize("document", [None, 3, [], {"exit_status": 0, "result": "text"}, {"id": 7, "result": None}])
def test_what_holds_no_result_is_refused_by_its_field(document):
    with pytest.raises(SpecError, match="baseline: holds no result"):
        result_in(document, "baseline")


READERS = (["advise"], ["check", "--min-batch", "1"], ["fit", "--result"])


@pytest.mark.parametrize("content", [None, b"{", b"\xff", b"[3]", b'{"result": 3}'])
def test_every_command_that_reads_a_result_says_the_same_of_a_file_without_one(content, tmp_path, capsys):
    path = tmp_path / "result.json"
    if content is not None:
        path.write_bytes(content)
    said = set()
    for command in READERS if content != b"[3]" else READERS[1:]:  # to `advise` a list is of estimates
        assert main([*command, str(path)]) == SpecError.exit_status
        said.add(capsys.readouterr().err.replace("--result", "result"))  # of `fit` it is an option
    (error,) = said
    assert error.startswith("error: result: ")


@pytest.mark.parametrize("command", READERS)
def test_every_command_that_reads_a_result_takes_it_from_standard_input(command, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("3"))
    assert main([*command, "-"]) == SpecError.exit_status
    assert "holds no result" in capsys.readouterr().err
