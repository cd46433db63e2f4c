"""Runs for the tests of the history, made past the services where only their columns matter."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from analysis.models import Run, RunSetting, RunText
from analysis.runs.columns.run_settings import settings_of
from analysis.runs.columns.run_text import words_of
from tests.factories import make_spec


def store(count: int = 1, **columns: Any) -> list[Run]:
    """So many finished runs, the later ones newer; columns may be functions of the place."""
    rows = []
    for place in range(count):
        given = {name: value(place) if callable(value) else value for name, value in columns.items()}
        rows.append(Run(**{"model": "bert-tiny", "state": "finished", "spec": make_spec().to_dict(), **given}))
    stored = Run.objects.bulk_create(rows)
    first = timezone.now() - timedelta(days=1)
    for place, run in enumerate(stored):  # auto_now_add gives all of them the present moment
        run.created_at = columns.get("created_at", first + timedelta(seconds=place))
    Run.objects.bulk_update(stored, ["created_at"])
    columns_of_text = ("name", "note", "model", "device_name")
    texts = ((run, words_of(*(getattr(run, name) for name in columns_of_text))) for run in stored)
    RunText.objects.bulk_create(RunText(run=run, words=words) for run, words in texts)
    rows = (RunSetting(run=run, setting=setting) for run in stored for setting in settings_of(run.spec))
    RunSetting.objects.bulk_create(rows)
    return stored
