"""Which runs give the matrix a cell, and what stands in it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.models import MatrixCell
from analysis.runs.columns.matrix_cells import Cell, settings_key
from analysis.runs.kinds import BY_KIND
from engine.facts.result import DeviceFacts, Point, RunResult
from engine.questions.kinds import KINDS
from engine.text.units import GIB
from tests.factories import make_probe, make_result, make_spec
from tests.factories.estimates import estimated_at
from tests.factories.results import CARD, estimate, result
from tests.factories.speeds import SPEED, make_unmeasurable_result

OWN_CARD = replace(CARD, foreign_used_bytes=0)


def cells_of(finished: SimpleNamespace) -> list[Cell]:
    found = KINDS[finished.kind].read(finished.result)
    return BY_KIND[finished.kind].cells(finished, found)  # type: ignore[arg-type]  # it has what is read


def run(answer: RunResult | dict[str, Any], **spec: Any) -> SimpleNamespace:
    data = answer.to_dict() if isinstance(answer, RunResult) else answer
    kind = "estimate" if "estimates" in data else "measurement"
    return SimpleNamespace(pk=1, kind=kind, model="bert-tiny", spec=make_spec(**spec).to_dict(), result=data)


def test_a_certified_run_gives_its_card_a_cell() -> None:
    (cell,) = cells_of(run(result(20, card=OWN_CARD, speed=100.0)))
    assert (cell["kind"], cell["card"], cell["largest_batch_size"]) == ("measured", "a100-40gb", 20)
    assert cell["samples_per_second"] == pytest.approx(100.0 * 20 / 21)
    assert cell["headroom_bytes"] == 20 * GIB
    assert (cell["model"], cell["input_size"], cell["settings"]) == ("bert-tiny", 128, "")


@pytest.mark.parametrize(
    "device",
    [replace(OWN_CARD, foreign_used_bytes=GIB), replace(OWN_CARD, limit_bytes=24 * GIB)],
    ids=["shared", "limited"],
)
def test_a_card_that_was_not_all_its_own_gives_none(device: DeviceFacts) -> None:
    assert cells_of(run(result(20, card=device))) == []


def test_an_uncertified_run_gives_none() -> None:
    answer = result(20, card=OWN_CARD)
    assert cells_of(run(replace(answer, boundary=replace(answer.boundary, certified=False)))) == []


def test_a_cpu_is_named_with_its_memory_limit() -> None:
    (cell,) = cells_of(run(make_result()))
    assert (cell["card"], cell["is_cpu"], cell["memory_bytes"]) == ("Test CPU limited to 1.0 GiB", True, GIB)


def test_a_card_that_the_catalogue_lacks_goes_by_its_own_name() -> None:
    (cell,) = cells_of(run(result(20, card=replace(OWN_CARD, name="NVIDIA Z1000"))))
    assert cell["card"] == "NVIDIA Z1000"


def test_an_estimate_gives_each_of_its_cards_a_cell_without_a_speed() -> None:
    cells = cells_of(run(estimate(9, cards=3)))
    assert [(cell["kind"], cell["safe_batch_size"], cell.get("samples_per_second")) for cell in cells] == [
        ("estimated", 8, None)
    ] * 3


def test_an_estimate_for_a_limit_gives_none() -> None:
    assert cells_of(run(estimate(9), memory_limit_bytes=GIB)) == []


def test_other_settings_make_other_cells() -> None:
    assert settings_key(make_spec(price_per_hour_usd=9.0, current_batch_size=2, precision="bf16").to_dict()) == ""
    assert settings_key(make_spec(mode="eval", pretrained=True).to_dict()) == "mode=eval pretrained=True"


def test_a_setting_that_is_still_unknown_here_keeps_a_run_apart() -> None:
    assert settings_key(make_spec().to_dict() | {"attention": "flash"}) == "attention=flash"


def test_the_input_size_is_part_of_the_cell() -> None:
    (cell,) = cells_of(run(result(20, card=OWN_CARD), sequence_length=64))
    assert cell["input_size"] == 64


def test_a_measured_cell_names_the_recommended_size_and_what_it_leaves() -> None:
    answer = result(20, card=OWN_CARD)
    point = Point.of(make_probe(16, peak_allocated_bytes=30 * GIB), OWN_CARD)
    (cell,) = cells_of(run(replace(answer, recommended=point, speed=SPEED)))
    assert (cell["largest_batch_size"], cell["recommended_batch_size"], cell["reserve_fraction"]) == (20, 16, 0.05)
    assert cell["headroom_bytes"] == OWN_CARD.capacity_bytes - 30 * GIB
    assert MatrixCell(**cell).shown_batch_size == 20


def test_a_measured_cell_without_a_recommendation_names_the_size_with_the_reserve_as_that() -> None:
    point = Point.of(make_probe(16, peak_allocated_bytes=30 * GIB), OWN_CARD)
    unclaimed = make_unmeasurable_result(largest_with_reserve=point)
    answer = replace(result(20, card=OWN_CARD), recommended=None, speed=unclaimed.speed, largest_with_reserve=point)
    (cell,) = cells_of(run(answer))
    named = (cell["recommended_batch_size"], cell["with_reserve_batch_size"], cell["samples_per_second"])
    assert named == (None, 16, None)
    assert MatrixCell(**cell).shown_batch_size == (16 if cell["reserve_fraction"] is not None else 20)


def test_a_measured_cell_of_before_the_reserve_says_that_it_is_not_known() -> None:
    (cell,) = cells_of(run(result(20, card=OWN_CARD)))
    assert cell["reserve_fraction"] is None
    assert MatrixCell(**cell).shown_batch_size == 20


@pytest.mark.parametrize(
    ("reserve", "share", "size"),
    [
        ({"reserve_fraction": 0.05}, 0.05, 36),
        ({"reserve_fraction": 0.5}, 0.5, 18),
        ({"reserve_fraction": 0.0}, 0.0, 36),
        ({"reserve_bytes": 20 * GIB}, 0.5, 18),
    ],
)
def test_an_estimated_cell_names_the_size_that_leaves_the_same_reserve(
    reserve: dict[str, float], share: float, size: int
) -> None:
    """A gibibyte a sample on 40, of which 38.5 are left beside the context; 36 is the safe size."""
    answer = estimate(38)
    points = [estimated_at(n, fits=n <= 38, allocated_bytes=n * GIB) for n in (1, 4, 20, 38, 39)]
    answer["estimates"][0] |= {"at": points, "limit_bytes": 77 * GIB // 2, "safe_batch_size": 36}
    (cell,) = cells_of(run(answer, **reserve))
    assert (cell.get("recommended_batch_size"), cell["with_reserve_batch_size"]) == (None, size)
    assert cell["reserve_fraction"] == share
    assert MatrixCell(**cell).shown_batch_size == size
