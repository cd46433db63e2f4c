"""What a trace found is read again without torch: from the account's cache, or from what is shipped."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import EstimateImpossible
from engine.estimate.estimator import Estimator
from engine.estimate.gpus import find
from engine.estimate.stored import stored_traces
from engine.estimate.stored.packed_trace import StoredTrace, packed, unpacked
from engine.estimate.stored.stored_traces import SHIPPED, file_name, keep, versions
from engine.settings.spec import RunSpec
from engine.text.units import GIB
from tests.engine.estimate.synthetic_models import model

ROOT = Path(__file__).resolve().parents[3]
SPEC = RunSpec("bert-tiny", sequence_length=64)
"""Has settings that are not shipped."""
CARDS = [find("a10"), find("a100-80gb")]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stored_traces._folder.cache_clear()
    yield tmp_path / "memorymark" / "traces"
    stored_traces._folder.cache_clear()


def stored(spec=SPEC, families=("sm80",), **others) -> StoredTrace:
    return StoredTrace(families, versions(), model(**others))


def estimates(spec=SPEC, cards=CARDS):
    made = Estimator(spec).estimates(cards)
    return [{**each.to_dict(), "seconds": 0} for each in made]


def run(code, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.slow
def test_an_estimate_is_the_same_from_its_stored_trace_and_takes_no_torch() -> None:
    command = ("-m", "engine", "estimate", "--spec", json.dumps(SPEC.to_dict()), "--gpu", "a10,t4", "--json")
    traced = json.loads(run("import runpy; runpy.run_module('engine', run_name='__main__')", *command[2:]))
    without = "import sys, runpy; sys.modules['torch'] = None; runpy.run_module('engine', run_name='__main__')"
    read = json.loads(run(without, *command[2:]))
    assert [{**each, "seconds": 0} for each in read] == [{**each, "seconds": 0} for each in traced]


def test_every_gpu_is_estimated_from_a_shipped_trace_without_torch() -> None:
    without = "import sys, runpy; sys.modules['torch'] = None; runpy.run_module('engine', run_name='__main__')"
    made = json.loads(run(without, "estimate", "bert-tiny", "--gpu", "all", "--json"))
    assert len(made) > 30
    assert {each["versions"]["torch"] for each in made} == {versions()["torch"]}


def test_what_replays_found_is_kept_for_the_next_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    keep(SPEC, stored(families=("sm80", "before_sm80", "cudnn_first")))
    first = estimates()
    monkeypatch.setattr("engine.estimate.replay.play", lambda *_: pytest.fail("replayed again"))
    assert estimates() == first


@pytest.mark.parametrize("content", [b"", b"no trace", b"\x78\x9c"])
def test_a_damaged_file_is_as_none(cache: Path, content: bytes) -> None:
    keep(SPEC, stored())
    (path,) = cache.rglob("*.trace")
    path.write_bytes(content)
    assert stored_traces.find(SPEC, "sm80") is None
    keep(SPEC, stored())
    assert stored_traces.find(SPEC, "sm80") == stored()


def test_a_trace_of_another_family_stays_beside_a_new_one() -> None:
    keep(SPEC, stored(families=("sm80",)))
    keep(SPEC, stored(families=("before_sm80",), sample_bytes=3 * 2**20))
    assert stored_traces.find(SPEC, "sm80") == stored()
    assert stored_traces.find(SPEC, "before_sm80") == stored(families=("before_sm80",), sample_bytes=3 * 2**20)
    assert stored_traces.find(SPEC, "cudnn_first") is None


def test_the_cache_keeps_so_many_traces_and_forgets_those_read_longest_ago(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_traces, "MOST_FILES", 3)
    specs = [RunSpec("bert-tiny", sequence_length=size) for size in (32, 48, 64, 80)]
    for number, each in enumerate(specs[:3]):
        keep(each, stored())
        os.utime(next(cache.rglob(file_name(each))), (number, number))
    assert stored_traces.find(specs[0], "sm80")  # read just now
    keep(specs[3], stored())
    assert {path.name for path in cache.rglob("*.trace")} == {file_name(specs[n]) for n in (0, 2, 3)}


def test_a_cache_that_cannot_be_written_costs_no_answer(cache: Path) -> None:
    cache.parent.parent.mkdir(exist_ok=True)
    cache.parent.write_text("a file in place of the folder")
    keep(SPEC, stored())
    assert stored_traces.find(SPEC, "sm80") is None


def test_another_version_of_a_library_has_traces_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = RunSpec("bert-tiny")
    assert stored_traces.find(shipped, "sm80") is not None
    monkeypatch.setattr(stored_traces, "version_of", lambda package: "9.9" if package == "torch" else "5.23.0")
    assert stored_traces.find(shipped, "sm80") is None


def test_without_torch_settings_that_are_not_shipped_are_said_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_traces, "version_of", lambda package: None)
    assert len(estimates(RunSpec("bert-tiny"))) == 2
    with pytest.raises(EstimateImpossible, match="without torch, models of the catalogue are estimated"):
        estimates()


@pytest.mark.parametrize(
    ("changed", "is_another"),
    [
        ({"precision": "bf16"}, True),
        ({"optimizer": "sgd"}, True),
        ({"sequence_length": 256}, True),
        ({"expandable_segments": True}, True),
        ({"sequence_length": 128}, False),  # the usual length, named
        ({"current_batch_size": 99, "memory_limit_bytes": 20 * GIB, "price_per_hour_usd": 1.0}, False),
    ],
)
def test_a_trace_is_of_the_settings_that_decide_what_steps_allocate(changed: dict, is_another: bool) -> None:
    usual = RunSpec("bert-tiny")
    assert (file_name(RunSpec("bert-tiny", **changed)) != file_name(usual)) is is_another


def test_shipped_traces_are_of_the_libraries_that_are_tested() -> None:
    content = stored_traces._shipped(file_name(RunSpec("bert-tiny")))
    assert all(stored_traces._are_alike(each.versions, versions()) for each in unpacked(content)), "scripts/ship-traces"
    assert SHIPPED.stat().st_size < 5 * 10**6


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("model", ["bert-tiny", "resnet18", "gpt2-lm"])
def test_shipped_traces_are_what_this_source_traces(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.estimate.tracing import trace

    spec = RunSpec(model, precision="bf16")
    shipped = stored_traces.find(spec, "sm80")
    assert shipped is not None
    assert trace.memory_model(spec, find("a10"), set()) == shipped.model, "run scripts/ship-traces"


def test_what_is_packed_is_unpacked() -> None:
    assert unpacked(packed([stored()])) == (stored(),)
