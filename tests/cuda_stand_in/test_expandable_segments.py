"""The allocator's other way: segments that grow page by page, and the driver's refusals in the middle of it."""

from collections.abc import Iterator

import pytest

from engine.results.result import Outcome, Reason
from engine.text.units import GIB
from tests.cuda_stand_in.cards import Cards, WarmEngine

CARD = {"memory": 4 * GIB}
SHORT = {"sequence_length": 128, "start_batch_size": 64}
OUT_OF_MEMORY = 2


@pytest.fixture(scope="module")
def growing(built: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmEngine]:
    """An engine whose allocator uses expandable segments."""
    cards = Cards(tmp_path_factory.mktemp("growing") / "cards", built)
    engine = WarmEngine(cards, expandable_segments=True)
    yield engine
    engine.stop()


def test_a_run_with_expandable_segments_is_certified(growing: WarmEngine) -> None:
    result = growing.measure(CARD, expandable_segments=True, **SHORT)
    assert result.boundary.certified
    assert result.environment["allocator_settings"] == "expandable_segments:True"
    assert max(p.peak_reserved_bytes + p.beside_bytes for p in result.probes if p.fits) <= 4 * GIB


@pytest.mark.parametrize("entry", ["cuMemSetAccess", "cuMemCreate"])
def test_a_driver_that_is_full_in_the_middle_is_an_out_of_memory(growing: WarmEngine, entry: str) -> None:
    full = f"{entry}:{OUT_OF_MEMORY}:above={3 * GIB}"
    result = growing.measure({**CARD, "fail": full}, **SHORT)
    assert result.boundary.reason is Reason.OUT_OF_MEMORY
    assert result.boundary.largest_batch_size
    assert result.boundary.certified
    assert f"refuses {entry}" in {line.partition(" ")[2] for line in growing.cards.log}


def test_a_driver_that_cannot_map_is_an_outcome_not_a_crash(growing: WarmEngine) -> None:
    probe = growing.probe({**CARD, "fail": f"cuMemMap:{OUT_OF_MEMORY}:above={2 * GIB}"}, 1000, sequence_length=128)
    assert probe.outcome is Outcome.OUT_OF_MEMORY
