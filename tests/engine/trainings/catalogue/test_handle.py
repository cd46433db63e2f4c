"""The worker process: sessions are fresh, a dead one is told apart from a full one, nothing outlives its run."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from engine.errors import DeviceUnavailable, EngineError, TimeIsUp, WorkerDied, WorkerFailed
from engine.estimate.batch_model import BatchModel
from engine.estimate.replay import Replays
from engine.facts.result import DeviceFacts, Outcome, Probe
from engine.settings.spec import RunSpec
from engine.text.units import MIB
from engine.trainings.catalogue import handle
from engine.trainings.catalogue.handle import WorkerHandle, allocator_variable

pytestmark = pytest.mark.slow
SPEC = RunSpec("bert-tiny", device="cpu", sequence_length=32, memory_limit_bytes=100 * MIB)


@pytest.fixture(scope="module")
def worker():
    with WorkerHandle(SPEC) as worker:
        yield worker
        worker_pid = worker._process.pid
    assert not os.path.exists(f"/proc/{worker_pid}")


@pytest.fixture
def session(worker):
    worker.close()
    worker.open()
    return worker


def probe(worker, batch_size, seconds=60.0):
    return worker.probe(batch_size, steps=3, with_kinds=False, seconds=seconds)


def test_the_first_probe_of_a_session_is_fresh_and_the_next_is_not(session):
    assert [probe(session, 2).fresh_process for _ in range(2)] == [True, False]


def test_a_new_session_is_another_process_and_takes_no_imports(session):
    before, imports = session._session_pid, session.import_seconds
    session.close()
    started = time.monotonic()
    session.open()
    assert session._session_pid != before
    assert session.import_seconds == imports
    assert time.monotonic() - started < imports


def test_a_refused_probe_ends_its_process_so_that_the_next_is_fresh(session):
    probe(session, 2)
    assert probe(session, 512).outcome is Outcome.OUT_OF_MEMORY
    assert probe(session, 2).fresh_process


def test_the_same_size_takes_the_same_bytes_in_every_process(session):
    first = probe(session, 8).peak_allocated_bytes
    session.close()
    assert probe(session, 8).peak_allocated_bytes == first


def test_each_session_is_told_what_the_one_before_it_found_beside_itself(monkeypatch):
    """So a tenant that stays is waited for once, and not in every session of the run."""
    sessions = Sessions(found=[480, 3480, 3480])
    with WorkerHandle(SPEC) as worker:
        monkeypatch.setattr(worker, "_start_if_needed", lambda: None)
        monkeypatch.setattr(worker, "_ask", sessions.answer)
        for _ in sessions.found:
            worker._forget_session()
            worker.open()
        worker._forget_session()
    assert sessions.told == [None, 480, 3480]


class Sessions:
    """Sessions that find so much beside themselves, and what each was told."""

    def __init__(self, found: list[int]) -> None:
        self.found, self.told = found, []

    def answer(self, request, *_):
        self.told.append(request["idle_beside_bytes"])
        device = DeviceFacts("cuda:0", "cuda", "Made-up card", 8_000, beside_bytes=self.found[len(self.told) - 1])
        return {"pid": 1, "model_seconds": 0.0, "device": device.to_dict(), "environment": {"torch": "none"}}


def kill_soon(pid: int) -> None:
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()


def test_a_killed_session_is_a_failure_and_never_out_of_memory(session):
    kill_soon(session._session_pid)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        session.probe(8, steps=10_000, with_kinds=False, seconds=60)
    assert probe(session, 2).fits


@pytest.mark.parametrize("is_between_probes", [True, False])
def test_a_worker_that_is_asked_to_end_died_and_the_next_one_serves(session, is_between_probes):
    """SIGTERM to the process that sessions are forked from, as earlyoom or an administrator sends it."""
    waiting = session._process
    if is_between_probes:
        waiting.terminate()
        waiting.wait()
    else:
        threading.Timer(0.2, waiting.terminate).start()
    with pytest.raises(WorkerDied, match="SIGTERM") as died:
        session.probe(8, steps=10_000, with_kinds=False, seconds=60)
    assert died.value.status == -signal.SIGTERM
    assert probe(session, 2).fits


def test_an_error_that_crossed_a_process_border_keeps_its_class():
    died = WorkerDied("ended by SIGKILL")
    assert type(EngineError.from_dict(died.to_dict())) is WorkerDied


@pytest.mark.parametrize(("number", "error"), [(signal.SIGKILL, WorkerDied), (signal.SIGSEGV, DeviceUnavailable)])
def test_a_process_killed_while_it_asks_for_the_device_says_nothing_of_the_device(monkeypatch, number, error):
    code = (
        "import os, sys, engine.trainings.catalogue.process as w, engine.measurement.device as d; "
        f"d.facts_of = lambda name: os.kill(os.getpid(), {int(number)}); w.main(*sys.argv[1:])"
    )
    monkeypatch.setattr(handle, "WORKER_COMMAND", (sys.executable, "-c", code))
    with WorkerHandle(SPEC) as worker, pytest.raises(error, match=number.name):
        worker.open()


def test_a_session_the_kernel_killed_for_memory_is_out_of_memory(session, monkeypatch):
    kills = iter([3, 4])
    monkeypatch.setattr(handle, "oom_kills", lambda: next(kills))
    kill_soon(session._session_pid)
    refused = session.probe(8, steps=10_000, with_kinds=False, seconds=60)
    assert (refused.outcome, refused.error_type, refused.fresh_process) == (Outcome.OUT_OF_MEMORY, "Killed", True)


def test_a_probe_that_outlasts_its_time_is_killed(session):
    pid = session._session_pid
    with pytest.raises(TimeIsUp):
        session.probe(8, steps=10_000, with_kinds=False, seconds=0.5)
    assert not os.path.exists(f"/proc/{pid}")
    assert probe(session, 2).fits


def test_where_forking_is_not_safe_every_session_is_a_process_of_its_own(monkeypatch):
    code = "import sys, engine.trainings.catalogue.process as w; w._can_fork = lambda: False; w.main(*sys.argv[1:])"
    monkeypatch.setattr(handle, "WORKER_COMMAND", (sys.executable, "-c", code))
    with WorkerHandle(SPEC) as worker:
        assert BatchModel.from_dict(worker.trace(60)).at(2).peak_live_bytes() > 0
        assert probe(worker, 2).fits
        assert probe(worker, 512).outcome is Outcome.OUT_OF_MEMORY
        assert probe(worker, 2).fresh_process
        with pytest.raises(TimeIsUp):
            worker.probe(8, steps=10_000, with_kinds=False, seconds=0.5)
        assert probe(worker, 2).fits


def test_a_crash_while_the_kernel_kills_somebody_else_is_no_out_of_memory(session, monkeypatch):
    kills = iter([3, 4])
    monkeypatch.setattr(handle, "oom_kills", lambda: next(kills))
    threading.Timer(0.2, os.kill, (session._session_pid, signal.SIGSEGV)).start()
    with pytest.raises(WorkerDied, match="SIGSEGV"):
        session.probe(8, steps=10_000, with_kinds=False, seconds=60)


def test_a_probe_of_several_seconds_tells_how_far_it_is_once_a_second(session):
    told: list[tuple[float, str, int]] = []
    with pytest.raises(TimeIsUp):
        session.probe(
            8,
            steps=10_000,
            with_kinds=False,
            seconds=3.5,
            progress=lambda *said: told.append((time.monotonic(), *said)),
        )
    times, stages, steps = zip(*told, strict=True)
    assert len(told) in (2, 3)
    assert set(stages) == {"memory"}
    assert list(steps) == sorted(set(steps))
    assert all(later - earlier > 0.9 for earlier, later in zip(times, times[1:], strict=False))
    assert probe(session, 2).fits


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the score is Linux's")
def test_a_session_is_the_kernel_s_first_victim(session):
    own = int(Path("/proc/self/oom_score_adj").read_text())
    assert Path(f"/proc/{session._session_pid}/oom_score_adj").read_text().strip() == str(max(500, own))


def test_what_a_dying_session_printed_is_in_its_error(session):
    with pytest.raises(WorkerFailed, match="TypeError.*batch_size"):
        session._ask({"do": "probe"}, "answer", 60)


def test_a_device_that_is_not_there_is_the_engine_s_own_error():
    with WorkerHandle(RunSpec("bert-tiny", device="cuda:99")) as worker:
        for ask in (lambda: worker.trace(60), worker.open):
            with pytest.raises(DeviceUnavailable, match="available"):
                ask()


def test_a_device_that_is_not_there_is_said_before_the_long_imports(monkeypatch):
    imports = "import sys, engine.trainings.catalogue.process as w; w._preload = lambda _: sys.exit('imported')"
    code = f"{imports}; w.main(*sys.argv[1:])"
    monkeypatch.setattr(handle, "WORKER_COMMAND", (sys.executable, "-c", code))
    with WorkerHandle(RunSpec("bert", device="cuda:99")) as worker, pytest.raises(DeviceUnavailable, match="cuda:99"):
        worker.trace(60)


def test_stopping_in_mid_probe_leaves_no_process():
    worker = WorkerHandle(SPEC)
    worker.open()
    pids = [worker._process.pid, worker._session_pid]
    worker.stop()
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def test_a_trace_takes_a_process_of_its_own_and_says_what_a_probe_will_measure(session):
    session.close()
    sessions, model = session.sessions, BatchModel.from_dict(session.trace(60))
    assert session.sessions == sessions
    first = probe(session, 8)
    assert first.fresh_process
    assert Replays(model).peak_bytes(None, 8) == pytest.approx(first.peak_allocated_bytes, rel=0.001)


def test_a_trace_that_takes_too_long_is_ended_and_the_worker_serves_on(session):
    session.close()
    with pytest.raises(TimeIsUp):
        session.trace(0.05)
    assert probe(session, 2).fits


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "expandable_segments:True"),
        ({"PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}, "max_split_size_mb:64,expandable_segments:True"),
        ({"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}, "max_split_size_mb:64,expandable_segments:True"),
    ],
)
def test_expandable_segments_are_added_to_the_settings_of_the_allocator(monkeypatch, given, expected):
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert allocator_variable(RunSpec("bert", expandable_segments=True)) == {"PYTORCH_ALLOC_CONF": expected}
    assert allocator_variable(RunSpec("bert")) == {}


def test_each_size_of_a_compiled_model_has_a_process_of_its_own(monkeypatch):
    closed = []
    with WorkerHandle(RunSpec("bert-tiny", device="cpu", torch_compile=True)) as worker:
        monkeypatch.setattr(worker, "open", lambda: None)
        monkeypatch.setattr(worker, "close", lambda: closed.append(setattr(worker, "_session_probes", 0)))
        monkeypatch.setattr(worker, "_ask", lambda *_: {"answer": Probe(2, Outcome.FITS).to_dict()})
        assert [probe(worker, 2).fresh_process for _ in range(3)] == [True, True, True]
    assert len(closed) == 2
