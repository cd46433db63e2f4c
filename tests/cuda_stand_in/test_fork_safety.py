"""The engine forks its sessions: no import may start CUDA before, for any entry of the catalogue."""

import json

import pytest

from engine.catalog import workload_ids
from tests.cuda_stand_in.cards import Cards, uuid

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
