"""A function that makes an optimizer step is tuned: in fresh processes, or in forks where it exists nowhere else."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.errors import CommandUntunable, SpecError, WorkloadFailed
from engine.public import tune
from engine.trainings.script.function import importable_name
from engine.trainings.script.start.environment import HOOK_VARIABLE
from engine.trainings.script.start.fork import why_no_fork
from tests.engine.questions.answers.answers import differing
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal, serving
from tests.waiting import wait_until

SCRIPTS = Path(__file__).parent / "scripts"
ROOT = Path(__file__).parents[4]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{SCRIPTS}", "OMP_NUM_THREADS": "2"}


def make_step(_: int) -> None:
    """A function of a module."""


def torch_that_used(*, initialized: tuple[str, ...] = (), lost: tuple[str, ...] = ()) -> SimpleNamespace:
    def driver(name: str) -> SimpleNamespace:
        return SimpleNamespace(is_initialized=lambda: name in initialized, _is_in_bad_fork=lambda: name in lost)

    cuda = driver("cuda")
    cuda.device_count = lambda: 0
    return SimpleNamespace(cuda=cuda, xpu=driver("xpu"))


def test_a_function_of_a_module_is_found_by_its_name_and_others_by_none() -> None:
    def inner() -> None:
        """A function of a function."""

    as_main = SimpleNamespace(__module__="__main__", __qualname__="make_step")
    assert importable_name(make_step, sys.modules) == f"{__name__}:make_step"
    for other in (inner, lambda _: None, partial(make_step, 1), as_main):
        assert importable_name(other, sys.modules) is None


def test_a_name_that_now_means_another_function_is_not_used() -> None:
    module = SimpleNamespace(__spec__=object(), make_step=print)
    assert importable_name(make_step, {__name__: module}) is None


@pytest.mark.parametrize(
    ("torch", "reason"),
    [
        (None, None),
        (torch_that_used(), None),
        (torch_that_used(initialized=("cuda",)), "the driver of CUDA"),
        (torch_that_used(lost=("cuda",)), "the driver of CUDA"),
        (torch_that_used(initialized=("xpu",)), "the driver of XPUs"),
    ],
)
def test_a_program_is_forked_only_where_it_has_opened_no_driver(torch, reason: str | None, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = why_no_fork()
    assert found is None if reason is None else reason in found


def test_a_function_of_a_notebook_that_has_used_a_card_is_refused_with_what_helps(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_that_used(initialized=("cuda",)))
    with pytest.raises(CommandUntunable, match="put make_step in a module of its own") as refused:
        tune(lambda _: print)
    assert refused.value.code == "cannot_fork"


@pytest.mark.parametrize(
    ("make_step", "changes", "field"),
    [
        ("train.py", {}, "make_step"),
        (3, {}, "make_step"),
        ("train:make_step", {"memory_limit": "much"}, "memory_limit_bytes"),
        ("train:make_step", {"current_batch_size": 0}, "current_batch_size"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_field(make_step, changes: dict, field: str) -> None:
    with pytest.raises(SpecError) as refused:
        tune(make_step, **changes)
    assert refused.value.field == field


def test_a_start_that_tunes_again_is_refused(monkeypatch) -> None:
    monkeypatch.setenv(HOOK_VARIABLE, "{}")
    with pytest.raises(SpecError, match="__main__"):
        tune("train:make_step")


class Lines(list):
    """The messages of the log events that a run says."""

    def __call__(self, event: dict) -> None:
        self += [event["message"]] if event["event"] == "log" else []


@pytest.fixture
def portal(tmp_path, monkeypatch):
    """A portal that the environment names, and a folder and a lock of the CPU for this test alone."""
    monkeypatch.chdir(tmp_path)
    with serving(LoopbackPortal()) as found, tempfile.TemporaryDirectory() as locks:
        for name, value in (("REPORT_TO", found.url), ("TOKEN", TOKEN), ("LOCK_DIR", locks)):
            monkeypatch.setenv(f"MEMORYMARK_{name}", value)
        yield found


def test_a_function_is_reported_where_the_environment_says_so_and_says_it_first(portal) -> None:
    with pytest.raises(WorkloadFailed, match="No module named 'nowhere'"):
        tune("nowhere:make_step", device="cpu", emit=(lines := Lines()))
    [announced], [events] = portal.announced.values(), portal.events.values()
    assert (announced["kind"], announced["spec"]["function"]) == ("command", "nowhere:make_step")
    assert events[-1]["error"]["code"] == "workload_failed"
    assert lines[0] == f"reported to {portal.url}; its files are in memorymark-runs"
    assert os.environ["MEMORYMARK_TOKEN"] == TOKEN


def test_a_function_is_reported_nowhere_where_the_program_says_so(portal, tmp_path) -> None:
    with pytest.raises(WorkloadFailed):
        tune("nowhere:make_step", device="cpu", report_to="", emit=id)
    assert (portal.calls, list(tmp_path.iterdir())) == ([], [])


def program(function: str, limit: str = "8MiB", folder: Path | None = None) -> dict:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "program.py"), function, limit],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)


def of_module(*, warm: bool, compare_speed: bool = False) -> dict:
    code = f"import json; from engine.public import tune; tuned = tune('program:make_step', device='cpu', warm={warm}, "
    code += f"compare_speed={compare_speed}, memory_limit='8MiB', emit=id); print(json.dumps(tuned.to_dict()))"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)


def peaks(result: dict) -> dict[int, int]:
    return {p["batch_size"]: p["peak_allocated_bytes"] for p in result["probes"]}


@pytest.mark.slow
def test_a_fork_of_a_program_that_computed_with_threads_finds_what_fresh_processes_find(tmp_path: Path) -> None:
    forked = program("make_step", folder=tmp_path)
    assert not list(tmp_path.iterdir())  # each start wrote a file, in a layer
    fresh, warm = of_module(warm=False), of_module(warm=True)
    assert [each["spec"]["starting"] for each in (forked, fresh, warm)] == ["fork", "process", "warm"]
    results = (forked, fresh, warm)
    boundary, *others = ({**each["boundary"], "soak_steps": None} for each in results)  # as many as quick steps were
    assert boundary["certified"]
    assert boundary["refused_batch_size"] == boundary["largest_batch_size"] + 1
    assert others == [boundary] * 2
    assert peaks(forked) == peaks(fresh) == peaks(warm)
    assert forked["environment"]["script"] == "program.py"


@pytest.mark.slow
def test_warm_starts_are_compared_in_turns_too() -> None:
    result = of_module(warm=True, compare_speed=True)
    assert len(result["speed_rounds"]) >= 2  # few on a busy machine
    if result["speed"]["claim"] == "nothing":  # as on a busy machine
        assert result["recommended"] is None
    else:
        assert result["recommended"]["batch_size"] > 16
    assert differing(result) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "code", "message"),
    [
        ("ignores", "batch_size_ignored", "was given 8"),
        ("steps_outside", "workload_failed", "made outside make_step"),
        ("without_backward", "workload_failed", "no optimizer of torch made a step"),
    ],
)
def test_a_function_that_proves_nothing_is_refused_with_the_reason(function: str, code: str, message: str) -> None:
    error = program(function)
    assert error["code"] == code
    assert message in error["message"]


@pytest.mark.slow
def test_a_function_that_makes_no_optimizer_is_measured_by_its_backward_passes() -> None:
    assert program("by_hand", "600KiB")["boundary"]["certified"]


@pytest.mark.slow
@pytest.mark.parametrize("warm", [False, True])
def test_a_module_that_cannot_be_imported_is_an_error_with_what_it_said(
    warm: bool, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "broken.py").write_text("raise ValueError('no such data set')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(WorkloadFailed, match="no such data set"):
        tune("broken:make_step", device="cpu", warm=warm, emit=id)


@pytest.mark.slow
def test_no_fork_outlives_its_program(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    running = subprocess.Popen(
        [sys.executable, str(SCRIPTS / "program.py"), "hangs", "8MiB", str(noted)],
        env=ENVIRONMENT | {"TORCH_HOME": str(tmp_path)},  # a cache, which a start may fill
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: noted.exists() and noted.read_text() != "")
        running.send_signal(signal.SIGKILL)
        running.wait(60)
        wait_until(lambda: not Path("/proc", noted.read_text()).exists())
    finally:
        running.kill()
