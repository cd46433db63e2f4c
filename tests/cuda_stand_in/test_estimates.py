"""Estimates beside PyTorch's real allocator, and the proof that they open no card."""

import json
import sys

import pytest

from engine.estimate.batch_model import BatchModel
from engine.estimate.gpus import find
from engine.estimate.predict import estimate_at
from engine.estimate.replay import Replays
from engine.settings.spec import DEFAULTS, SETTINGS, TRAINING_SETTINGS, RunSpec
from engine.text.units import GIB, MIB
from engine.trainings.catalogue.handle import WorkerHandle
from tests.cuda_stand_in.cards import Cards

ALLOCATED, RESERVED = 0.01, 0.02
"""How far an estimate may be from the real allocator's peaks."""
LARGE_PAGE_BYTES = 20 * MIB
CARD = find("a100-40gb")  # whose processors and workspaces the made-up card has
TRANSFORMERS = {"bert-tiny": 256, "bert": 32, "gpt2": 16, "distilbert": 64, "vit_b_16": 32}
CASES = [
    (model, precision, has_checkpointing)
    for model in TRANSFORMERS
    for precision in ("fp32", "bf16", "fp16")
    for has_checkpointing in (False, True)
    if not (has_checkpointing and model == "vit_b_16")
]


@pytest.fixture(scope="module")
def workers(built, tmp_path_factory):
    """One worker a model: its imports take longer than the steps."""
    cards = Cards(tmp_path_factory.mktemp("estimates") / "cards", built)
    cards.set(memory=80 * GIB)
    started: dict[str, WorkerHandle] = {}

    def worker_for(spec: RunSpec) -> WorkerHandle:
        if spec.model not in started:
            for worker in started.values():
                worker.stop()
            started.clear()
            started[spec.model] = WorkerHandle(spec)
        worker = started[spec.model]
        worker.close()
        worker.spec = spec
        return worker

    with cards.in_force():
        yield worker_for
        for worker in started.values():
            worker.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("model", "precision", "has_checkpointing"), CASES)
def test_an_estimate_is_what_the_real_allocator_gives(workers, record_property, model, precision, has_checkpointing):
    settings = {"precision": precision, "gradient_checkpointing": has_checkpointing}
    hold_to_the_real_allocator(workers, record_property, RunSpec(model, device="cuda:0", **settings))


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"accumulation_steps": 4, "clip_grad_norm": True},
        {"ema": True, "optimizer": "sgd"},
        {"frozen_blocks": 1},
        {"frozen_blocks": 2, "precision": "bf16"},
        {"attention": "eager"},
    ],
    ids=str,
)
def test_the_settings_of_a_training_are_estimated_as_the_real_allocator_holds_them(workers, record_property, given):
    hold_to_the_real_allocator(workers, record_property, RunSpec("bert-tiny", device="cuda:0", **given))


def describe(spec: RunSpec) -> list[object]:
    changed = [
        SETTINGS[name].describe(getattr(spec, name))
        for name in TRAINING_SETTINGS[1:]
        if getattr(spec, name) != DEFAULTS[name]
    ]
    return [spec.precision, *changed]


def hold_to_the_real_allocator(workers, record_property, spec: RunSpec) -> None:
    size, worker = TRANSFORMERS[spec.model], workers(spec)
    traced = BatchModel.from_dict(worker.trace(300))
    said = estimate_at(traced, CARD, size)
    real = worker.probe(size, steps=3, with_kinds=False, seconds=300)
    off = [
        said.peak_allocated_bytes / real.peak_allocated_bytes - 1,
        said.peak_reserved_bytes / real.peak_reserved_bytes - 1,
    ]
    row = f"{spec.model} b{size} {', '.join(map(str, describe(spec)))}: "
    row += f"allocated {real.peak_allocated_bytes / MIB:.0f} MiB {off[0]:+.2%}, "
    row += f"reserved {real.peak_reserved_bytes / MIB:.0f} MiB {off[1]:+.2%}"
    record_property("estimate", row)
    print(row)
    assert traced.method == "fake_cuda"
    assert abs(off[0]) <= ALLOCATED, row
    assert abs(off[1]) <= RESERVED, row


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_estimate_with_expandable_segments_is_at_most_a_page_above_the_real_allocator(cards, precision):
    cards.set(memory=80 * GIB)
    spec = RunSpec("bert-tiny", device="cuda:0", precision=precision, expandable_segments=True)
    with cards.in_force(), WorkerHandle(spec) as worker:
        replays = Replays(BatchModel.from_dict(worker.trace(300)), spec.expandable_segments)
        real = worker.probe(256, steps=3, with_kinds=False, seconds=300)
    said = estimate_at(replays.model, CARD, 256, replays=replays)
    assert said.peak_allocated_bytes == pytest.approx(real.peak_allocated_bytes, rel=ALLOCATED)
    assert 0 <= said.peak_reserved_bytes - real.peak_reserved_bytes <= LARGE_PAGE_BYTES


@pytest.mark.parametrize("kind", ["plain", "limited", "expandable"])
@pytest.mark.each_value
def test_the_simulated_allocator_does_event_for_event_what_the_real_one_does(cards, kind):
    options = ("--patterns-of", kind, "--patterns", "2", "--events", "200")
    done = cards.run(sys.executable, "benchmarks/allocator_on_device.py", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["differences"] == []


@pytest.mark.parametrize("count", [0, 2], ids=["no card", "two cards"])
def test_an_estimate_neither_opens_a_card_nor_starts_the_driver(cards, count):
    cards.set(cards=count)
    done = cards.engine("estimate", "bert-tiny", "--gpu", "a100-40gb", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["method"], document["approximate_because"]) == ("fake_cuda", None)
    assert cards.log == []


def test_every_build_and_host_says_the_same_bytes(cards):
    """This process's own torch is the CPU build, where it is the one that is required."""
    arguments = ("estimate", "bert-tiny", "--gpu", "a10", "--precision", "bf16", "--json")
    from_cuda_build = json.loads(cards.engine(*arguments).stdout)
    plain = {name: value for name, value in cards.environment.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    cards.environment = plain
    from_own_build = json.loads(cards.engine(*arguments).stdout)
    for same in ("method", "largest_batch_size", "safe_batch_size", "at"):
        assert from_cuda_build[same] == from_own_build[same]


@pytest.mark.parametrize("device", ["cuda:1", "cpu"])
def test_a_run_s_own_trace_opens_no_card(cards, device):
    cards.set(cards=2)
    with cards.in_force(), WorkerHandle(RunSpec("bert-tiny", device=device)) as worker:
        model = worker.trace(300)
    assert model["method"] == ("fake_cpu" if device == "cpu" else "fake_cuda")
    assert cards.contexts() == []


def test_a_process_that_uses_cuda_already_is_told_why_its_estimate_is_approximate(cards):
    code = """
import torch
torch.ones(1, device="cuda")
from engine.estimate.gpus import find
from engine.estimate.tracing.trace import conditions_for
print(conditions_for(find("a10"), "fp32").approximate_because)
"""
    done = cards.python(code)
    assert "CUDA is in use in this process already" in done.stdout, done.stderr


def test_a_driver_asked_for_its_cards_before_is_in_nobody_s_way(cards):
    """torch.cuda.is_available() starts the driver. What is traced afterwards still calls nothing of it."""
    code = """
import torch
assert torch.cuda.is_available()
from engine.estimate.tracing import fake_cuda
assert fake_cuda.obstacle() is None, fake_cuda.obstacle()
torch.ones(1, device="cuda")
"""
    done = cards.python(code)
    assert done.returncode == 0, done.stderr
    assert len(cards.contexts()) == 1  # that of the last line


def test_a_device_whose_driver_hangs_or_fails_is_no_device(cards):
    cards.set(fail="cuInit:999")
    done = cards.run(sys.executable, "-m", "engine", "bert-tiny", "cuda:0")
    assert done.returncode == 4, done.stderr
    assert "cuda:0" in done.stderr
