"""Where a card's memory is short: the host's memory, a driver that spills, cuDNN's plans, segments that grow."""

from collections.abc import Iterator

import pytest

from engine.facts.result import Outcome, Reason
from engine.text.units import GIB, MIB
from tests.cuda_stand_in.cards import Cards, WarmEngine

CARD: dict[str, object] = {"memory": 8 * GIB}
BATCH_SIZE = 256


def test_offloaded_activations_take_less_of_the_gpu_than_kept_ones(warm: WarmEngine) -> None:
    kept, offloaded = (
        warm.probe(CARD, BATCH_SIZE, sequence_length=64, optimizer="sgd", offload_activations=moved)
        for moved in (False, True)
    )
    assert kept.outcome is offloaded.outcome is Outcome.FITS
    assert kept.peak_allocated_bytes is not None
    assert offloaded.peak_allocated_bytes is not None
    assert offloaded.peak_allocated_bytes < kept.peak_allocated_bytes / 2


def test_gradients_that_are_never_freed_are_live_with_the_activations_on_a_gpu(warm: WarmEngine) -> None:
    usual, never_freed = (
        warm.probe(CARD, BATCH_SIZE, sequence_length=64, optimizer="sgd", zero_grad=where)
        for where in ("before-forward", "zeros")
    )
    assert (usual.peak_allocated_bytes or 0) < (never_freed.peak_allocated_bytes or 0)


A100 = {"memory": 4 * GIB}
SHORT = {"sequence_length": 128, "start_batch_size": 64}


def test_a_driver_that_spills_over_gives_the_boundary_of_the_card(warm: WarmEngine) -> None:
    of_the_card = warm.measure(A100, **SHORT)
    spilled = warm.measure({**A100, "spill": 64 * GIB}, **SHORT)
    assert spilled.boundary.certified
    assert spilled.boundary.largest_batch_size == of_the_card.boundary.largest_batch_size
    fitting = [p for p in spilled.probes if p.fits]
    assert max(p.peak_reserved_bytes + p.beside_bytes for p in fitting) <= 4 * GIB


def test_a_tenant_is_not_pushed_into_the_hosts_memory(warm: WarmEngine) -> None:
    alone = warm.measure(A100, **SHORT)
    beside = warm.measure({**A100, "spill": 64 * GIB, "held": GIB}, **SHORT)
    assert beside.boundary.largest_batch_size < alone.boundary.largest_batch_size
    fitting = [p for p in beside.probes if p.fits]
    assert max(p.peak_reserved_bytes + p.beside_bytes for p in fitting) <= 4 * GIB


SMALL = {"image_size": 64, "memory_limit_bytes": GIB, "optimizer": "momentum"}
CONVOLVING_CARD = {"memory": 4 * GIB}


@pytest.mark.parametrize("model", ["resnet18", "resnet"])
def test_a_residual_network_trains(warm: WarmEngine, model: str) -> None:
    probe = warm.probe(CONVOLVING_CARD, 16, model=model, **SMALL)
    assert probe.fits
    assert probe.peak_reserved_bytes is not None
    assert probe.peak_reserved_bytes <= GIB


def test_a_workspace_counts_as_memory_of_the_training(warm: WarmEngine) -> None:
    without = warm.probe({**CONVOLVING_CARD, "workspace": 0}, 64, model="resnet18", **SMALL)
    with_one = warm.probe({**CONVOLVING_CARD, "workspace": 400}, 64, model="resnet18", **SMALL)
    assert with_one.fits
    assert (with_one.peak_allocated_bytes or 0) > (without.peak_allocated_bytes or 0) + 16 * MIB


def test_a_workspace_that_does_not_fit_costs_a_plan_and_not_the_size(warm: WarmEngine) -> None:
    probe = warm.probe({**CONVOLVING_CARD, "workspace": 100_000}, 64, model="resnet18", **SMALL)
    assert probe.fits


def test_a_cudnn_that_cannot_start_is_no_out_of_memory(warm: WarmEngine) -> None:
    roomy = {**SMALL, "memory_limit_bytes": 3 * GIB}
    probe = warm.probe({**CONVOLVING_CARD, "fail": "cudnnCreate:1001"}, 16, model="resnet18", **roomy)
    assert probe.outcome is Outcome.ERROR
    assert "CUDNN_STATUS_NOT_INITIALIZED" in (probe.error_message or "")


GROWING_CARD = {"memory": 4 * GIB}
OUT_OF_MEMORY = 2


@pytest.fixture(scope="module")
def growing(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmEngine]:
    """An engine whose allocator uses expandable segments."""
    cards = Cards(tmp_path_factory.mktemp("growing") / "cards", built)
    engine = WarmEngine(cards, expandable_segments=True)
    yield engine
    engine.stop()


def test_a_run_with_expandable_segments_is_certified(growing: WarmEngine) -> None:
    result = growing.measure(GROWING_CARD, expandable_segments=True, **SHORT)
    assert result.boundary.certified
    assert result.environment["allocator_settings"] == "expandable_segments:True"
    assert max(p.peak_reserved_bytes + p.beside_bytes for p in result.probes if p.fits) <= 4 * GIB


@pytest.mark.parametrize("entry", ["cuMemSetAccess", "cuMemCreate"])
def test_a_driver_that_is_full_in_the_middle_is_an_out_of_memory(growing: WarmEngine, entry: str) -> None:
    full = f"{entry}:{OUT_OF_MEMORY}:above={3 * GIB}"
    result = growing.measure({**GROWING_CARD, "fail": full}, **SHORT)
    assert result.boundary.reason is Reason.OUT_OF_MEMORY
    assert result.boundary.largest_batch_size
    assert result.boundary.certified
    assert f"refuses {entry}" in {line.partition(" ")[2] for line in growing.cards.log}


def test_a_driver_that_cannot_map_is_an_outcome_not_a_crash(growing: WarmEngine) -> None:
    probe = growing.probe(
        {**GROWING_CARD, "fail": f"cuMemMap:{OUT_OF_MEMORY}:above={2 * GIB}"}, 1000, sequence_length=128
    )
    assert probe.outcome is Outcome.OUT_OF_MEMORY
