"""What is moved to the host's memory leaves the GPU: real copies of the real CUDA build, on a made-up driver."""

from engine.results.result import Outcome
from engine.text.units import GIB
from tests.cuda_stand_in.cards import WarmEngine

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
