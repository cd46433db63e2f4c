"""The weekly news for GPU managers: what the lab lost last week, by model and script, without names of people."""

from __future__ import annotations

from datetime import datetime, timedelta

from analysis.formatting import bytes_text, hours_text
from analysis.lists.use.days import first_moment, use_by_day
from analysis.lists.use.load import HELD_MAX, RUNS_MAX, held_since, settings_measured_since
from analysis.lists.use.unused import unused_by
from analysis.models import Device, NewsEvent, NewsKind
from analysis.presentation.labels import model_name

DAYS = 7
NAMED = 5
"""Models and scripts that the news names, those with the most to save first."""


def note_week(now: datetime) -> bool:
    """Store the news of the week before this one, once; False where it is stored, or nothing was measured."""
    ends = first_moment(now, 1) - timedelta(days=now.weekday())
    begins = ends - timedelta(days=DAYS)
    key = f"week:{begins:%G-W%V}"
    if NewsEvent.objects.filter(key=key).exists():
        return False
    runs = settings_measured_since(begins, ends)[:RUNS_MAX]
    if not runs:
        return False
    known = {device.pk: device.host.registered_at for device in Device.objects.select_related("host")}
    held = sum(use.hours for use in use_by_day(held_since(begins)[:HELD_MAX], known, ends, DAYS).values())
    lost = list(unused_by(runs, lambda run: run.training).items())
    said = [
        f"{model_name(training)}: {each.saving_text or 'no gain shown'}"
        f"{' a year' if each.saving_text else ''}, {bytes_text(each.unused_bytes)} unused"
        for training, each in lost[:NAMED]
    ]
    more = f"; and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
    hours = f"From {begins:%Y-%m-%d} runs held {hours_text(held)} of devices."
    verdict = f"{hours} What changes would save: {'; '.join(said)}{more}."
    event = NewsEvent(kind=NewsKind.WEEK, key=key, details={"verdict": verdict})
    NewsEvent.objects.bulk_create([event], ignore_conflicts=True)
    return True
