"""A run begins with an estimate of its own device, is guided by it, and grades it; without one it goes on as ever."""

from dataclasses import replace

import pytest

from engine.cli.printing.result_text import details
from engine.describe.time_left.phase_facts import event_line
from engine.errors import DeviceUnavailable, EstimateImpossible, TimeIsUp, WorkerFailed
from engine.estimate.calibration import Calibration
from engine.estimate.prior import PriorEstimate, card_of
from engine.estimate.types import Estimate
from engine.facts.result import DeviceFacts, RunResult
from engine.questions.size import measure
from engine.search.guided import ExpectedMemory
from engine.settings.spec import RunSpec
from engine.text.from_json import from_json
from engine.text.units import GIB, MIB
from tests.engine.fake_worker import FakeWorker, synthetic_model
from tests.engine.synthetic_devices import Device

A100 = 42_474_471_424
MORE_THAN_A_MIB = round(1.01 * MIB)


def worker(boundary: int = 528, *, per_sample: int = MIB, traced=None) -> FakeWorker:
    """A device whose steps take 100 MiB and 1 MiB a sample, beside a trace that says 100 MiB and `per_sample`."""
    limit = 100 * MIB + boundary * MIB + MIB // 2
    curve = Device(lambda size: 100 * MIB + size * MIB, lambda size: size <= boundary, limit, boundary)
    return FakeWorker(boundary, curve=curve, traced=traced or synthetic_model(100 * MIB, per_sample))


def run(fake: FakeWorker, events: list | None = None, **settings) -> RunResult:
    return measure(RunSpec("bert-tiny", **settings), (events if events is not None else []).append, worker=fake)


def warnings_of(events: list[dict]) -> list[str]:
    return [event["message"] for event in events if event["event"] == "log" and event["level"] == "warning"]


def test_the_estimate_is_told_before_the_first_probe_and_names_the_device_and_its_limit():
    events: list[dict] = []
    fake = worker()
    run(fake, events)
    kinds = [event["event"] for event in events]
    told = from_json(Estimate, next(event["estimate"] for event in events if event["event"] == "estimate"))
    assert kinds.index("device") < kinds.index("estimate") < kinds.index("probe_started")
    assert [event["phase"] for event in events if event["event"] == "phase"][:3] == [
        "estimating", "preparing", "searching",
    ]  # fmt: skip
    assert (told.largest_batch_size, told.limit_bytes) == (528, fake.curve.limit_bytes)
    assert (told.gpu.id, told.gpu.name) == ("cpu", "Made-up device")


def test_a_device_that_is_not_there_ends_the_run_at_once():
    fake = worker(traced=DeviceUnavailable("cuda:0 is not available here"))
    fake.open = lambda: pytest.fail("was opened all the same")
    with pytest.raises(DeviceUnavailable, match="not available here"):
        run(fake)


def test_a_person_reads_why_an_estimate_is_approximate():
    traced = replace(synthetic_model(100 * MIB, MIB), approximate_because="CUDA is in use")
    events: list[dict] = []
    run(worker(traced=traced), events)
    told = next(event for event in events if event["event"] == "estimate")
    assert event_line(told).endswith("(approximate, because CUDA is in use)")


def test_the_search_starts_near_the_estimated_boundary():
    fake = worker()
    result = run(fake)
    assert result.boundary.largest_batch_size == 528
    assert [size for size in fake.sizes[:4] if size > 1][0] > 400
    assert fake.sizes[:5].count(529) == 1


def test_the_result_has_the_estimate_for_every_size_that_trained_and_its_error():
    result = run(worker(per_sample=MORE_THAN_A_MIB))
    estimate = from_json(Estimate, result.estimate)
    trained = {p.batch_size for p in result.probes if p.fits}
    assert trained <= {at.batch_size for at in estimate.at}
    assert result.estimate_error.peak == pytest.approx((100 * MIB + MORE_THAN_A_MIB * 528) / (628 * MIB) - 1)
    assert result.estimate_error.boundary == pytest.approx(estimate.largest_batch_size / 528 - 1)
    assert result.timings.estimate_seconds > 0


def test_a_boundary_that_is_not_certified_does_not_grade_the_estimate():
    assert run(worker(), max_batch_size=100).estimate_error.boundary is None


@pytest.mark.parametrize(
    "failure",
    [
        EstimateImpossible("it needs data"),
        TimeIsUp("no answer within 60 s"),
        WorkerFailed("SIGSEGV"),
        KeyError("words"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_a_trace_that_fails_is_a_warning_and_the_plain_search(failure):
    events: list[dict] = []
    fake = worker(traced=failure)
    result = run(fake, events)
    assert (result.boundary.largest_batch_size, result.boundary.certified) == (528, True)
    assert (result.estimate, result.estimate_error) == (None, None)
    assert fake.sizes[:3] == [1, 16, 128]
    assert len(warnings_of(events)) == 1
    assert "continuing without an estimate" in warnings_of(events)[0]


def test_a_prediction_that_fails_in_the_search_is_a_warning_and_the_plain_search(monkeypatch):
    events: list[dict] = []
    fails_in_the_search = ExpectedMemory(lambda size: {}[size])
    monkeypatch.setattr(PriorEstimate, "expectation", lambda self: fails_in_the_search)
    result = run(worker(), events)
    assert (result.boundary.largest_batch_size, result.boundary.certified) == (528, True)
    assert [words.split(":")[1] for words in warnings_of(events)] == [" KeyError"]


def test_a_start_that_was_asked_for_is_kept_and_the_estimate_is_told_all_the_same():
    fake = worker()
    result = run(fake, start_batch_size=24)
    assert fake.sizes[:2] == [1, 24]
    assert result.estimate["largest_batch_size"] == 528


def test_an_estimate_that_is_wrong_by_a_factor_of_two_still_ends_in_the_certificate():
    for per_sample in (MIB // 2, 2 * MIB):
        boundary = run(worker(per_sample=per_sample)).boundary
        assert (boundary.largest_batch_size, boundary.refused_batch_size, boundary.certified) == (528, 529, True)


def test_the_command_line_sets_the_estimate_beside_the_measurement():
    events: list[dict] = []
    result = run(worker(per_sample=MORE_THAN_A_MIB), events)
    told = next(event for event in events if event["event"] == "estimate")
    assert ": largest batch 5" in event_line(told)
    assert "Estimated: largest 523; measured 528. Error of its estimated memory: +0.8 %." in details(result)


def gpu(name: str, capacity: int, capability: str | None, **facts) -> DeviceFacts:
    return DeviceFacts("cuda:0", "cuda", name, capacity, compute_capability=capability, **facts)


def test_a_card_of_the_catalogue_is_estimated_with_the_memory_it_really_has():
    card = card_of(gpu("NVIDIA A100-SXM4-40GB", A100 - 1, "8.0", foreign_used_bytes=GIB))
    alone = card_of(gpu("NVIDIA A100-SXM4-40GB", A100 - 1, "8.0"))
    assert card.id == "a100-40gb" or card.id.startswith("a100")
    assert (card.total_bytes, card.context_bytes) == (A100 - 1, alone.context_bytes + GIB)


def test_a_calibrated_card_is_estimated_with_its_own_constants():
    measured = Calibration(
        "NVIDIA A100-SXM4-40GB", None, A100, 321 * MIB, 7 * MIB, 7 * MIB, None, "2.13.0", None, "2026"
    )
    card = card_of(gpu("NVIDIA A100-SXM4-40GB", A100, "8.0", foreign_used_bytes=GIB), measured)
    assert (card.context_bytes, card.cublas_workspace_bytes, card.calibrated) == (321 * MIB + GIB, 7 * MIB, True)


def test_a_card_that_is_not_in_the_catalogue_is_estimated_by_its_capability():
    card = card_of(gpu("NVIDIA H900", 90 * GIB, "9.0"))
    assert (card.name, card.total_bytes, card.compute_capability) == ("NVIDIA H900", 90 * GIB, (9, 0))
    assert card.cublas_workspace_bytes == 32 * 2**20


@pytest.mark.parametrize(
    "device",
    [gpu("AMD Instinct MI999", 64 * GIB, None), DeviceFacts("mps:0", "mps", "Apple arm64 GPU", 16 * GIB)],
    ids=["unknown AMD card", "mps"],
)
def test_a_device_without_rules_is_not_estimated(device):
    with pytest.raises(EstimateImpossible, match="cannot be estimated"):
        card_of(device)


def test_the_cpu_is_estimated_without_a_card():
    assert card_of(DeviceFacts("cpu", "cpu", "a CPU", 64 * GIB)) is None
