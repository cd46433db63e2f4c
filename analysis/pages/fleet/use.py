"""The context of the fleet page that is not polled: who loses most, hours and memory by day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User

from analysis.charts.sparkline import day_bars, day_marks
from analysis.formatting import bytes_text, hours_text, share_text
from analysis.lists.use.days import Use, first_moment, use_by_day, use_by_person
from analysis.lists.use.load import HELD_MAX, RUNS_MAX, held_since, memory_since, settings_measured_since
from analysis.lists.use.unused import MeasuredSetting, Unused, unused_by
from analysis.models import Device, DeviceDay
from analysis.presentation.labels import model_name

RANGES = (7, 30, 90)
"""Days over which use can be shown."""
PICTURES_MAX = 24
ROWS_MAX = 5
NOBODY = "no account"


def use_context(devices: Sequence[Device], now: datetime, *, host: str, day_count: int) -> dict[str, Any]:
    since, names = first_moment(now, day_count), {device.pk: device for device in devices}
    known = {device.pk: device.host.registered_at for device in devices}
    held = held_since(since)
    measured = settings_measured_since(since)
    runs = [run for run in measured[:RUNS_MAX] if not host or run.device_id in names]
    used = sorted(use_by_day(held[:HELD_MAX], known, now, day_count).items(), key=lambda each: -each[1].hours)
    memory = memory_since([device for device, _ in used[:PICTURES_MAX]], since)
    by_person = use_by_person(held[:HELD_MAX], known, now, day_count)
    most = max((day.hours for use in list(by_person.values())[:PICTURES_MAX] for day in use.days), default=0.0)
    unused = unused_by(runs, lambda run: (run.person, run.day))
    lines = {device: _held_picture(names[device], use) for device, use in used}
    pictures = [_picture(names[device], use, lines[device], memory) for device, use in used[:PICTURES_MAX]]
    return {
        "ranges": RANGES,
        "day_count": day_count,
        "pictures": pictures,
        "marks": day_marks([day.day for day in used[0][1].days]) if used else (),
        "more_pictures": len(used) - len(pictures),
        "users": [_picture_of_person(*each, most, unused) for each in list(by_person.items())[:PICTURES_MAX]],
        "more_users": max(0, len(by_person) - PICTURES_MAX),
        "most_hours": hours_text(most),
        "lines": lines,
        "held_since": held[HELD_MAX].begins if len(held) > HELD_MAX else None,
        "runs_max": RUNS_MAX if len(measured) > RUNS_MAX else None,
        **_losses(runs, names, {device: use.hours for device, use in used}, by_person),
    }


def _losses(
    runs: Sequence[MeasuredSetting],
    names: Mapping[int, Device],
    device_hours: Mapping[int, float],
    by_person: Mapping[str | None, Use],
) -> dict[str, Any]:
    """Return who leaves most unused: people, trainings and devices, as many of each as a table shows."""
    losing = unused_by(runs, lambda run: run.person)
    numbers = dict(User.objects.filter(username__in=[name for name in losing if name]).values_list("username", "pk"))
    people = [
        {
            "unused": each,
            "name": person or NOBODY,
            # runs without a person cannot be selected in the list of runs
            "address": _runs({"user": person}) if person else "",
            "hours": by_person[person].hours if person in by_person else 0.0,
            "person_id": numbers.get(person or ""),
        }
        for person, each in losing.items()
    ]
    trainings = [
        {
            "unused": each,
            "name": model_name(training),
            "address": _runs({"model": training}),
            "is_own": is_own,
            "hours": None,
        }
        for (training, is_own), each in unused_by(runs, lambda run: (run.training, run.is_own)).items()
    ]
    lossy_devices = [
        {"unused": each, "name": str(names[device]), "hours": device_hours.get(device, 0.0)}
        for device, each in unused_by(runs, lambda run: run.device_id).items()
        if device is not None and device in names
    ]
    return {
        "people": people[:ROWS_MAX],
        "more_people": max(0, len(people) - ROWS_MAX),
        "trainings": trainings[:ROWS_MAX],
        "more_trainings": max(0, len(trainings) - ROWS_MAX),
        "lossy_devices": lossy_devices[:ROWS_MAX],
        "more_lossy": max(0, len(lossy_devices) - ROWS_MAX),
    }


def _picture(
    device: Device, use: Use, held: dict[str, Any], memory: Mapping[tuple[int, date], DeviceDay]
) -> dict[str, Any]:
    known = [memory.get((device.pk, day.day)) for day in use.days]
    rows = zip(use.days[::-1], known[::-1], strict=True)
    return {
        "device": device,
        "use": use,
        "held": held,
        "used_days": [(day, read) for day, read in rows if day.hours or read],
        "memory": _memory_picture(device, known),
        "busy": _busy_picture(device, known),
    }


def _held_picture(device: Device, use: Use) -> dict[str, Any]:
    texts = [f"{each.day:%Y-%m-%d}: {hours_text(each.hours)}, {share_text(each.fraction)}" for each in use.days]
    description = f"Use of {device.name} by day: {share_text(use.fraction)} of the time since {use.days[0].day}"
    return _day_picture(description, hours_text(use.hours), [each.fraction for each in use.days], texts)


def _day_picture(description: str, text: str, shares: Sequence[float], texts: Sequence[str]) -> dict[str, Any]:
    """Return a share for each day as bars, with its text, in a sentence, and as the figure of all days together."""
    return {"description": description, "text": text, "bars": day_bars(shares, texts)}


def _memory_picture(device: Device, days: Sequence[DeviceDay | None]) -> dict[str, Any] | None:
    """Draw the mean memory in use in front of the maximum; None without readings."""
    known = [day for day in days if day]
    if not known or not device.capacity_bytes:
        return None
    pairs = [(day.mean_used_bytes, day.most_used_bytes) if day else (0, 0) for day in days]
    texts = [
        f"{day.day}: {bytes_text(mean)} on average, {bytes_text(most)} at most" if day else ""
        for day, (mean, most) in zip(days, pairs, strict=True)
    ]
    mean = bytes_text(sum(day.used_sum_bytes for day in known) // sum(day.reading_count for day in known))
    most = bytes_text(max(day.most_used_bytes for day in known))
    description = f"Memory in use on {device.name} by day: {mean} on average, {most} at most"
    means, mosts = ([each / device.capacity_bytes for each in used] for used in zip(*pairs, strict=True))
    picture = _day_picture(description, mean, means, texts)
    return picture | {"bars": day_bars(mosts, texts, "most") + picture["bars"], "text_of_most": most}


def _busy_picture(device: Device, days: Sequence[DeviceDay | None]) -> dict[str, Any] | None:
    """Draw the days with a driver's reading of how busy the GPU was, by any program; None without any."""
    known = [day for day in days if day and day.busy_reading_count]
    if not known:
        return None
    shares = [day.busy_fraction if day else None for day in days]
    texts = [
        f"{day.day}: busy {share_text(share)}" if day and share is not None else ""
        for day, share in zip(days, shares, strict=True)
    ]
    total = sum(day.busy_sum_percent for day in known) / sum(day.busy_reading_count for day in known) / 100
    share = share_text(total)
    description = f"{device.name} busy by day: {share} of the time that was read"
    return _day_picture(description, share, [share or 0.0 for share in shares], texts)


def _picture_of_person(
    person: str | None, use: Use, most: float, unused: Mapping[tuple[str | None, date | None], Unused]
) -> dict[str, Any]:
    texts = [f"{each.day:%Y-%m-%d}: {hours_text(each.hours)}" for each in use.days]
    name, hours = person or NOBODY, hours_text(use.hours)
    description = f"Use by {name} by day: {hours} since {use.days[0].day}"
    held = _day_picture(description, hours, [each.hours / most for each in use.days], texts)
    used = [(day, unused.get((person, day.day))) for day in use.days[::-1] if day.hours]
    return {"name": name, "use": use, "held": held, "used_days": used}


def _runs(query: Mapping[str, Any]) -> str:
    return f"?{urlencode(query)}"
