"""Probes of a real model on the CPU: repeatable to the byte, full steps, true outcomes."""

import pytest
import torch

from engine.errors import DeviceUnavailable, SpecError, WorkloadFailed
from engine.facts.result import MemoryByKind, Outcome
from engine.measurement import compiling
from engine.measurement.attribution import attribute
from engine.measurement.compiling import compile_for_each_size
from engine.measurement.device import Cpu, Device, Memory, Peaks, facts_of, open_device, resolve
from engine.measurement.environment import check_environment
from engine.measurement.probe import Bench, run_probe
from engine.measurement.step import TrainingStep
from engine.measurement.timing import BlockTimer, timed_steps
from engine.measurement.workloads import Built, build
from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES, RunSpec
from engine.text.units import MIB
from tests.engine.measurement.tensors import gradients, state_tensors


def cpu_with_limit(limit_bytes: int) -> Cpu:
    """A CPU device without the guard, which would stay in force in this process."""
    device = Cpu(torch.device("cpu"))
    device.limit_bytes = limit_bytes
    return device


def bench(limit_bytes: int = 200 * MIB, **settings) -> Bench:
    spec = RunSpec("bert-tiny", device="cpu", sequence_length=32, **settings)
    return Bench(spec, cpu_with_limit(limit_bytes), build(spec, torch.device("cpu")))


def kinds_total(kinds: MemoryByKind) -> int:
    names = ("parameters", "gradients", "optimizer_state", "activations", "other")
    return sum(getattr(kinds, f"{name}_bytes") for name in names)


@pytest.mark.slow
def test_the_peak_is_the_same_to_the_byte_in_every_order():
    one = bench()
    first = [run_probe(one, size, with_kinds=False).peak_allocated_bytes for size in (64, 4, 64)]
    another = run_probe(bench(), 64, with_kinds=False).peak_allocated_bytes
    assert first[0] == first[2] == another


def test_a_probe_runs_full_steps_and_says_what_held_the_memory():
    probe = run_probe(bench(), 4)
    assert (probe.outcome, probe.steps) == (Outcome.FITS, 3)
    assert kinds_total(probe.memory_by_kind) == probe.peak_allocated_bytes
    parameters = 4 * 4_386_178
    assert probe.memory_by_kind.optimizer_state_bytes >= 2 * parameters
    assert probe.peak_phase == "optimizer_step"
    assert (probe.step_seconds, probe.timed_step_seconds) == (None, ())


@pytest.mark.parametrize(("optimizer", "copies"), [("none", 2), ("sgd", 2), ("momentum", 3), ("adamw", 4)])
def test_the_optimizer_s_state_is_part_of_the_peak(optimizer, copies):
    probe = run_probe(bench(optimizer=optimizer), 1, with_kinds=False)
    assert probe.peak_allocated_bytes >= copies * 4 * 4_386_178
    assert probe.memory_by_kind.optimizer_state_bytes // (4 * 4_386_178) == copies - 2


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("mode", ["train", "eval"])
def test_every_precision_and_mode_trains(precision, mode):
    assert run_probe(bench(precision=precision, mode=mode), 2, with_kinds=False).fits


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_optimizer_really_steps_from_the_first_step_on(precision):
    one = bench(precision=precision)
    step = TrainingStep(one.spec, one.built, torch.device("cpu"))
    before = [p.detach().clone() for p in one.built.model.parameters()]
    step(2)
    assert len(state_tensors(step)) == 3 * len(before)
    assert any(not torch.equal(a, b) for a, b in zip(before, one.built.model.parameters(), strict=True))


def test_a_step_that_the_optimizer_skips_is_no_measurement():
    one = bench(precision="fp16")
    step = TrainingStep(one.spec, one.built, torch.device("cpu"))
    object.__setattr__(one.built, "loss", lambda *_: sum(p.sum() for p in one.built.model.parameters()) * torch.inf)
    with pytest.raises(WorkloadFailed, match="skipped its step"):
        step(2)


@pytest.mark.slow
def test_checkpointing_takes_fewer_activation_bytes():
    plain, saved = (
        run_probe(bench(gradient_checkpointing=on, optimizer="sgd"), 128, with_kinds=False) for on in (False, True)
    )
    assert saved.peak_allocated_bytes < plain.peak_allocated_bytes


def test_above_the_budget_it_is_out_of_memory_with_the_bytes_it_took():
    probe = run_probe(bench(limit_bytes=60 * MIB), 4)
    assert (probe.outcome, probe.error_type) == (Outcome.OUT_OF_MEMORY, "BudgetExceeded")
    assert probe.peak_allocated_bytes > 60 * MIB
    assert (probe.step_seconds, probe.samples_per_second, probe.memory_by_kind) == (None, None, None)


@pytest.mark.slow
def test_the_first_step_is_not_the_peak_with_adam():
    limit = run_probe(bench(), 256, with_kinds=False).peak_allocated_bytes - 1
    refused = run_probe(bench(limit_bytes=limit), 256)
    assert refused.outcome is Outcome.OUT_OF_MEMORY
    assert "peak of step 2" in refused.error_message


def test_a_batch_of_another_size_is_refused():
    one = bench()
    step = TrainingStep(one.spec, one.built, torch.device("cpu"))
    object.__setattr__(one.built, "make_batch", lambda _: {"labels": torch.zeros(3)})
    with pytest.raises(WorkloadFailed, match="does not have 4 samples"):
        step(4)


def test_an_error_that_is_no_memory_is_kept_as_what_it_is():
    one = bench()
    object.__setattr__(one.built, "loss", lambda *_: (_ for _ in ()).throw(RuntimeError("illegal memory access")))
    probe = run_probe(one, 4)
    assert (probe.outcome, probe.error_type) == (Outcome.ERROR, "RuntimeError")
    assert (probe.error_message, probe.failed_phase) == ("illegal memory access", "forward")


class CountingDevice(Device):
    """A made-up accelerator with a caching allocator: counts as one does, refuses above `refuse_above`."""

    has_caching_allocator = True
    name = "Made-up card"
    capacity_bytes = 10**9

    def __init__(self, refuse_above: int) -> None:
        super().__init__(torch.device("cpu"))
        self.refuse_above, self.calls, self.counted = refuse_above, [], [700, 900, 800]

    def start_from_clean(self) -> None:
        self.calls.append("clean")

    def synchronize(self) -> None:
        self.calls.append("synchronize")

    def peaks(self) -> Peaks:
        self.counted = [*self.counted[1:], self.counted[0]]
        return Peaks(self.counted[-1], 1000)

    def memory(self) -> Memory:
        return Memory(1300, 300)

    def allocator_retries(self) -> int:
        return 2


def counting_bench(refuse_above: int) -> Bench:
    spec = RunSpec("bert-tiny", device="cpu", sequence_length=8)
    built = build(spec, torch.device("cpu"))
    original = built.forward

    def forward(batch):
        if len(batch["labels"]) > refuse_above:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return original(batch)

    object.__setattr__(built, "forward", forward)
    return Bench(spec, CountingDevice(refuse_above), built)


def test_an_accelerator_s_own_counters_are_reported_with_the_phase_of_the_peak():
    probe = run_probe(counting_bench(8), 8)
    assert (probe.peak_allocated_bytes, probe.peak_reserved_bytes, probe.device_used_bytes) == (900, 1000, 1300)
    assert (probe.beside_bytes, probe.peak_phase, probe.allocator_retries) == (300, "backward", 0)
    assert probe.memory_bytes == 1000


def test_an_accelerator_s_out_of_memory_is_an_outcome_with_its_phase_and_text():
    probe = run_probe(counting_bench(8), 9)
    assert (probe.outcome, probe.failed_phase, probe.steps) == (Outcome.OUT_OF_MEMORY, "forward", 0)
    assert probe.beside_bytes == 300
    assert "Tried to allocate 2.00 GiB" in probe.error_message


def test_a_reserve_above_the_capacity_never_fits():
    one = counting_bench(8)
    one.device.capacity_bytes = 999
    probe = run_probe(one, 4)
    assert (probe.outcome, probe.error_type) == (Outcome.OUT_OF_MEMORY, "CapacityExceeded")
    assert "the driver took the rest from the host" in probe.error_message


def test_an_accelerator_is_warmed_up_once_and_timed_long_enough():
    one = counting_bench(8)
    one.device.warm_up_seconds = one.device.least_timed_seconds = 0.3
    stages: list[str] = []
    step = TrainingStep(one.spec, one.built, torch.device("cpu"))
    first = timed_steps(one.device, step, 2, lambda stage, _: stages.append(stage))
    assert sum(first) >= 0.3
    assert "warm-up" in stages
    stages.clear()
    timed_steps(one.device, step, 2, lambda stage, _: stages.append(stage))
    assert "warm-up" not in stages


def test_a_block_begins_with_an_empty_cache_and_a_step_that_is_not_timed():
    one = counting_bench(8)
    timer = BlockTimer(one)
    stages: list[str] = []
    block = timer.run(2, 0.0001, lambda stage, _: stages.append(stage))
    assert (block.outcome, len(block.step_seconds)) == (Outcome.FITS, 1)
    assert one.device.calls[0] == "clean"
    assert stages == ["timing"] * 2
    assert one.device.calls.count("synchronize") == 2 * len(stages)


def test_a_block_says_what_other_work_used_and_the_optimizer_s_state_lives_on(monkeypatch):
    one = bench()
    timer = BlockTimer(one)
    first = timer.run(1, 0.01)
    state = state_tensors(timer.step)
    timer.run(2, 0.01)
    assert state
    assert all(a is b for a, b in zip(state, state_tensors(timer.step), strict=True))
    assert {"others_cores", "pages_swapped", "load_average"} <= first.conditions.keys()
    assert first.computing_fraction is None or torch.get_num_threads() == 1, "threads that spin compute nothing"
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert 0 < (timer.run(1, 0.01).computing_fraction or 0) <= 1
    assert gradients(timer.step) == []


def test_a_size_that_cannot_be_timed_is_an_answer_of_the_block():
    block = BlockTimer(counting_bench(8)).run(16, 0.01)
    assert (block.outcome, block.step_seconds) == (Outcome.OUT_OF_MEMORY, ())


def test_the_cpu_is_always_there_and_a_missing_gpu_is_named():
    assert facts_of("cpu").capacity_bytes > 2**30
    if not torch.cuda.is_available():
        with pytest.raises(DeviceUnavailable, match="available: .*cpu"):
            resolve("cuda:7")


def test_a_limit_above_the_device_is_refused(monkeypatch):
    monkeypatch.setattr("engine.machine.host.guard_memory", lambda: None)
    with pytest.raises(SpecError, match="above what"):
        open_device(RunSpec("bert", device="cpu", memory_limit_bytes=2**49))
    assert open_device(RunSpec("bert", device="cpu")).limit_bytes == CPU_DEFAULT_LIMIT_BYTES


def test_expandable_segments_are_refused_where_auto_found_no_cuda():
    with pytest.raises(SpecError, match="expandable_segments"):
        check_environment(RunSpec("bert-tiny", expandable_segments=True), "cpu")


class Wide(torch.nn.Module):
    """Keeps two tensors of `WIDTH` values a sample, whatever is joined: the first product and the input of the last."""

    WIDTH = 512

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, self.WIDTH), torch.nn.Linear(self.WIDTH, 1)

    def forward(self, x):
        return self.last(self.first(x).sin().exp())


def compiled_bench():
    model = Wide()
    compile_for_each_size(model)
    built = Built(model, lambda n: {"x": torch.randn(n, 8)}, lambda b: model(b["x"]), lambda y, _: y.square().mean())
    return Bench(RunSpec("bert-tiny", device="cpu", torch_compile=True), cpu_with_limit(200 * MIB), built)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_a_compiled_model_s_memory_is_counted_and_its_compile_time_is_in_no_step():
    bench = compiled_bench()
    probe = run_probe(bench, 1000)
    needed = 2 * 1000 * Wide.WIDTH * 4
    assert (probe.outcome, probe.steps) == (Outcome.FITS, 3)
    assert needed <= probe.memory_by_kind.activations_bytes <= 1.1 * needed
    timer = BlockTimer(bench)
    first, again, other = (timer.run(size, 0.01) for size in (1000, 1000, 64))
    assert [b.conditions["recompilations"] for b in (first, again, other)] == [0, 0, 0]
    assert again.conditions["compile_seconds"] is None
    assert other.conditions["compile_seconds"] > 10 * max(other.step_seconds)
    assert attribute(bench, 4, steps=1) is None


def test_steps_run_untimed_until_one_compiles_nothing(monkeypatch):
    compiled = iter([0, 1, 1, 2, 2, 2])
    monkeypatch.setattr(compiling, "graphs_compiled", lambda: next(compiled))
    steps = []
    compiling.compile_by_steps(lambda: steps.append(1))
    assert len(steps) == 3
