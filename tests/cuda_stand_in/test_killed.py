"""Sessions that are killed, hang or die: their memory is back before the next; and what forks them starts no CUDA."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from engine.errors import TimeIsUp, WorkerFailed
from engine.facts.result import Probe
from engine.settings.catalog import workload_ids
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from engine.trainings.catalogue.handle import WorkerHandle
from tests.cuda_stand_in.cards import CONTEXT_BYTES, Cards, WarmEngine, uuid

CARD = {"memory": 4 * GIB}
SPEC = RunSpec("bert-tiny", device="cuda", sequence_length=128)
BATCH_SIZE = 1200  # 3.4 GiB: two of them have no room beside each other


@contextmanager
def session_of(warm: WarmEngine, **knobs: object) -> Iterator[WorkerHandle]:
    worker = warm.fresh(SPEC, **CARD, **knobs)
    with warm.cards.in_force():
        worker.open()
        yield worker


def probe(worker: WorkerHandle, seconds: float = 60) -> Probe:
    return worker.probe(BATCH_SIZE, steps=3, with_kinds=False, seconds=seconds)


@contextmanager
def killer(warm: WarmEngine) -> Iterator[None]:

    def wait_and_kill() -> None:
        while not (hanging := [line for line in warm.cards.log if " hangs in " in line]):
            time.sleep(0.01)
        os.kill(int(hanging[0].split()[0]), signal.SIGKILL)

    thread = Thread(target=wait_and_kill, daemon=True)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize("release_ms", [0, 1500])
def test_the_memory_of_a_killed_session_is_back_before_the_next_one(warm: WarmEngine, release_ms: int) -> None:
    holds = f"cudaMalloc:above={3 * GIB}"
    with session_of(warm, release_ms=release_ms, hang=holds) as worker:
        with killer(warm), pytest.raises(WorkerFailed, match="SIGKILL"):
            probe(worker)
        warm.cards.set(**CARD, release_ms=release_ms)
        after = probe(worker)
    assert after.fits
    assert after.fresh_process
    assert after.beside_bytes == CONTEXT_BYTES


def test_late_memory_of_an_own_session_is_not_taken_for_somebody_elses(warm: WarmEngine) -> None:
    with session_of(warm, release_ms=1000) as worker:
        probe(worker)
        worker.close()
        probe(worker)
        assert worker.device is not None
        assert not worker.device.is_shared


def test_a_refused_session_is_replaced_and_leaves_nothing(warm: WarmEngine) -> None:
    with session_of(warm, release_ms=500) as worker:
        too_large = worker.probe(100_000, steps=3, with_kinds=False, seconds=60)
        next_one = probe(worker)
    assert not too_large.fits
    assert next_one.fits
    assert len({pid for pid, _ in warm.cards.contexts()}) == 2


def test_a_session_that_hangs_in_the_driver_is_killed_in_time(warm: WarmEngine) -> None:
    with session_of(warm, hang="cudaMalloc:after=10") as worker:
        with pytest.raises(TimeIsUp):
            probe(worker, seconds=3)
        assert any(line.endswith("hangs in cudaMalloc") for line in warm.cards.log)
        warm.cards.set(**CARD)
        assert probe(worker).fits


def test_a_tenant_gone_with_its_memory_late_is_waited_for(warm: WarmEngine) -> None:
    with session_of(warm, release_ms=800) as worker:
        worker.close()
        tenant = warm.cards.tenant()
        assert tenant.take(5 * GIB // 2) == 0
        tenant.end()
        assert probe(worker).fits


def test_memory_is_counted_over_all_processes(warm: WarmEngine) -> None:
    """The stand-in itself."""
    with session_of(warm) as worker:
        tenant = warm.cards.tenant()
        assert tenant.take(5 * GIB // 2) == 0
        assert tenant.take(GIB) == 2  # out of memory
        assert not probe(worker).fits
        tenant.end()
        assert probe(worker).fits


# imports one entry after the other; after each, CUDA must be untouched here and usable in a fork
IMPORT_ALL = """
import json, os, sys
import torch
from engine.measurement.workloads import preload

for entry in sys.argv[1:]:
    preload(entry)
    sys.stdout.write(json.dumps({"entry": entry, "started": torch.cuda.is_initialized(), "pid": os.getpid()}) + "\\n")
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        torch.empty(1, device="cuda")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0, entry
"""


@pytest.fixture(scope="module")
def imported(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict], Cards]:
    cards = Cards(tmp_path_factory.mktemp("imports") / "cards", built)
    done = cards.python(IMPORT_ALL, *workload_ids(), PYTORCH_NVML_BASED_CUDA_CHECK="1")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], cards


@pytest.mark.each_value
@pytest.mark.parametrize("entry", workload_ids())
def test_importing_an_entry_leaves_cuda_untouched_and_usable_in_a_fork(imported: tuple, entry: str) -> None:
    said, cards = imported
    found = next(row for row in said if row["entry"] == entry)
    assert not found["started"]
    assert f"{found['pid']} cuInit" not in cards.log


def test_each_fork_made_a_context_of_its_own(imported: tuple) -> None:
    said, cards = imported
    contexts = cards.contexts()
    assert [card for _, card in contexts] == [uuid()] * len(workload_ids())
    assert said[0]["pid"] not in [pid for pid, _ in contexts]


def test_a_process_forked_from_one_that_uses_cuda_is_refused(cards: Cards) -> None:
    """The stand-in itself: without this the tests above would prove nothing."""
    code = """
import ctypes, os
runtime = ctypes.CDLL("libcudart.so.13")
assert runtime.cudaSetDevice(0) == 0
if os.fork() == 0:
    os._exit(runtime.cudaSetDevice(0))
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert cards.python(code).stdout.split() == ["3"]  # cudaErrorInitializationError
