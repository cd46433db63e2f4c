"""What the migration makes of runs of before: lists sort by what is claimed, and memory alone recommends nothing."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest
from django.apps import apps

from analysis.models import MatrixCell, Run
from engine.results.result import RecommendedBy
from tests.factories.history import store
from tests.factories.matrix import estimated, measured
from tests.factories.pages import finished
from tests.factories.speeds import make_result_by_memory, make_timed_result

pytestmark = pytest.mark.django_db

migration = import_module("analysis.migrations.0032_claims")
NEW = {"claimed_speedup": None, "claimed_saving_per_year_usd": None}


def test_what_was_claimed_is_what_lists_sort_by() -> None:
    run = finished(make_timed_result())
    Run.objects.update(**NEW)
    migration.fill(apps, None)
    run.refresh_from_db()
    assert (run.claimed_speedup, run.claimed_saving_per_year_usd) == (1.39, run.saving_per_year_usd)
    assert run.recommended_batch_size == 8


def test_a_size_by_memory_is_recommended_no_more() -> None:
    run = finished(make_result_by_memory())
    of_before = {"recommended_batch_size": 8, "recommended_memory_bytes": 800, "is_speed_measurable": False}
    Run.objects.update(**of_before, **NEW)
    before = Run.objects.get().updated_at
    migration.fill(apps, None)
    run.refresh_from_db()
    assert (run.recommended_batch_size, run.recommended_memory_bytes, run.largest_batch_size) == (None, None, 8)
    assert run.result["speed"]["recommended_by"] == "memory_reserve"  # the document stays as it was
    assert run.updated_at > before


def test_starts_in_turns_that_show_a_gain_keep_their_size() -> None:
    timed = make_timed_result()
    assert timed.speed is not None
    run = finished(replace(timed, speed=replace(timed.speed, recommended_by=RecommendedBy.MEMORY_RESERVE)))
    migration.fill(apps, None)
    run.refresh_from_db()
    assert (run.recommended_batch_size, run.speedup) == (8, 1.39)


def test_the_cells_name_the_size_with_the_reserve_as_that() -> None:
    run = measured("a10", largest=20)
    estimated("l4", largest=50)
    MatrixCell.objects.filter(kind="estimated").update(recommended_batch_size=48, with_reserve_batch_size=None)
    cells = MatrixCell.objects.filter(run=run)
    cells.update(recommended_batch_size=18, reserve_fraction=0.05, headroom_bytes=2 * 2**30)
    document = {**(Run.objects.get(pk=run.pk).result or {}), "speed": make_result_by_memory().to_dict()["speed"]}
    Run.objects.filter(pk=run.pk).update(result=document, is_speed_measurable=False)
    migration.fill(apps, None)
    columns = ("recommended_batch_size", "with_reserve_batch_size", "samples_per_second", "headroom_bytes")
    assert cells.values_list(*columns).get() == (None, 18, None, None)
    assert MatrixCell.objects.filter(kind="estimated").values_list(*columns[:2]).get() == (None, 48)
    migration.put_back(apps, None)
    assert MatrixCell.objects.get(kind="estimated").recommended_batch_size == 48


def test_the_runs_are_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "AT_ONCE", 2)
    store(5, speedup=1.39)
    migration.fill(apps, None)
    assert Run.objects.filter(claimed_speedup=1.39).count() == 5
