"""The stored cells follow the runs: the newest counts, a deleted one leaves its place to the one before."""

import pytest
from django.contrib.auth.models import User

from analysis.models import MatrixCell, Run
from analysis.runs import services
from analysis.runs.matrix_store import cells_renew
from tests.factories.matrix import estimated, measured, measured_on_ranks

pytestmark = pytest.mark.django_db


def cells() -> dict[tuple[str, str], int]:
    return {(cell.kind, cell.card): cell.run_id for cell in MatrixCell.objects.all()}


def test_the_newest_run_stands_in_the_cell() -> None:
    measured(largest=20)
    newer = measured(largest=24)
    cell = MatrixCell.objects.get()
    assert (cell.run_id, cell.largest_batch_size) == (newer.pk, 24)
    assert cell.answered_at == Run.objects.get(pk=newer.pk).finished_at


def test_a_measurement_and_an_estimate_of_a_card_stand_beside_each_other() -> None:
    run, estimate = measured("a10"), estimated("a10", "t4")
    assert cells() == {
        ("measured", "a10"): run.pk,
        ("estimated", "a10"): estimate.pk,
        ("estimated", "t4"): estimate.pk,
    }


def test_a_deleted_run_leaves_its_cell_to_the_one_before_and_takes_it_back(root: User) -> None:
    older, newer = measured(), measured()
    services.runs_delete(run_ids={newer.pk}, by=root)
    assert cells() == {("measured", "a100-40gb"): older.pk}
    services.runs_restore(run_ids={newer.pk}, by=root)
    assert cells() == {("measured", "a100-40gb"): newer.pk}


def test_a_restored_older_run_does_not_push_out_a_newer_one(root: User) -> None:
    older, newer = measured(), measured()
    services.runs_delete(run_ids={older.pk}, by=root)
    services.runs_restore(run_ids={older.pk}, by=root)
    assert cells() == {("measured", "a100-40gb"): newer.pk}


def test_a_deleted_estimate_of_all_cards_leaves_one_of_a_single_card(root: User) -> None:
    single, every = estimated("a10"), estimated("a10", "t4")
    services.runs_delete(run_ids={every.pk}, by=root)
    assert cells() == {("estimated", "a10"): single.pk}


def test_a_run_on_several_ranks_has_a_cell_of_its_own_and_one_that_emulates_them_none(root: User) -> None:
    single, ranks = measured(), measured_on_ranks(ranks=8, strategy="fsdp")
    measured_on_ranks(emulate_ranks=8, strategy="fsdp")
    assert {(cell.settings, cell.model): cell.run_id for cell in MatrixCell.objects.all()} == {
        ("", "bert-tiny"): single.pk,
        ("ranks=8 strategy=fsdp", "bert-tiny"): ranks.pk,
    }
    newer = measured_on_ranks(ranks=8, strategy="fsdp")
    services.runs_delete(run_ids={newer.pk}, by=root)
    assert MatrixCell.objects.get(settings="ranks=8 strategy=fsdp").run_id == ranks.pk


def test_a_run_of_other_settings_does_not_take_the_place(root: User) -> None:
    measured(mode="eval")
    plain = measured()
    services.runs_delete(run_ids={plain.pk}, by=root)
    assert MatrixCell.objects.get().settings == "mode=eval"


def test_renewed_by_all_runs_the_cells_are_the_same(root: User) -> None:
    measured("a10"), measured("a10"), measured("t4", mode="eval"), estimated("a10", "t4"), estimated("t4")
    services.runs_delete(run_ids={measured("a100-40gb").pk}, by=root)
    columns = [field.name for field in MatrixCell._meta.fields if field.name != "id"]
    before = list(MatrixCell.objects.order_by("card", "kind").values(*columns))
    cells_renew(run_ids=Run.objects.values_list("pk", flat=True))
    assert list(MatrixCell.objects.order_by("card", "kind").values(*columns)) == before


def test_a_run_without_a_lease_keeps_no_cell() -> None:
    run = measured()
    MatrixCell.objects.all().delete()
    assert not services.run_finish(run_id=run.pk, token="another", result=Run.objects.get(pk=run.pk).result)
    assert cells() == {}
