"""Drivers that go on in the host's memory (WSL, Windows): what lies there is not the card's."""

from engine.text.units import GIB
from tests.cuda_stand_in.cards import WarmEngine

CARD = {"memory": 4 * GIB}
SHORT = {"sequence_length": 128, "start_batch_size": 64}


def test_a_driver_that_spills_over_gives_the_boundary_of_the_card(warm: WarmEngine) -> None:
    of_the_card = warm.measure(CARD, **SHORT)
    spilled = warm.measure({**CARD, "spill": 64 * GIB}, **SHORT)
    assert spilled.boundary.certified
    assert spilled.boundary.largest_batch_size == of_the_card.boundary.largest_batch_size
    fitting = [p for p in spilled.probes if p.fits]
    assert max(p.peak_reserved_bytes + p.beside_bytes for p in fitting) <= 4 * GIB


def test_a_tenant_is_not_pushed_into_the_hosts_memory(warm: WarmEngine) -> None:
    alone = warm.measure(CARD, **SHORT)
    beside = warm.measure({**CARD, "spill": 64 * GIB, "held": GIB}, **SHORT)
    assert beside.boundary.largest_batch_size < alone.boundary.largest_batch_size
    fitting = [p for p in beside.probes if p.fits]
    assert max(p.peak_reserved_bytes + p.beside_bytes for p in fitting) <= 4 * GIB
