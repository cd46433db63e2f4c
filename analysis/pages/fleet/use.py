"""The context of the fleet page's second part: hours and memory by day, and who leaves most unused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from analysis.lists.use.days import DayOfUse, DeviceUse, PersonUse, first_moment, use_by_day, use_by_person
from analysis.lists.use.load import HELD_MAX, RUNS_MAX, held_since, memory_since, settings_measured_since
from analysis.lists.use.unused import Unused, by_person, by_person_and_day, by_training
from analysis.models import Device, DeviceDay
from analysis.pages.fleet.query import RANGES
from analysis.presentation.charts.day_bars import day_bars, day_marks
from analysis.presentation.formatting import bytes_text, percent
from analysis.presentation.labels import model_name

PICTURES_MAX = 24
ROWS_MAX = 10


@dataclass(frozen=True, slots=True)
class DayText:
    """A row of the table of days. The memory is that of all programs; empty where no worker read it."""

    day: date
    hours: str
    share: str
    memory: str = ""
    most_memory: str = ""
    busy: str = ""

    @classmethod
    def of(cls, use: DayOfUse, memory: DeviceDay | None = None) -> DayText:
        held = (use.day, hours_text(use.hours), share_text(use.fraction))
        if memory is None:
            return cls(*held)
        busy = "" if memory.busy_fraction is None else share_text(memory.busy_fraction)
        return cls(*held, bytes_text(memory.mean_used_bytes), bytes_text(memory.most_used_bytes), busy)


@dataclass(frozen=True, slots=True)
class DayPicture:
    """A share for each day as bars, and the same in a sentence; memory has the most that was in use behind its mean."""

    description: str
    text: str
    """The figure of all days together."""
    bars: SafeString
    text_of_most: str = ""


@dataclass(frozen=True, slots=True)
class DevicePicture:
    """A device's use as pictures, with the days of their table: those of which nothing is known are left out.

    `memory` and `busy` are None where no worker has read them in these days.
    """

    device: Device
    use: DeviceUse
    share: str
    held: DayPicture
    memory: DayPicture | None
    busy: DayPicture | None
    used_days: tuple[DayText, ...]


@dataclass(frozen=True, slots=True)
class PersonPicture:
    """A person's use as a picture, with the days of its table; each has what was left unused on it, where measured."""

    name: str
    use: PersonUse
    held: DayPicture
    used_days: tuple[tuple[DayText, Unused | None], ...]


@dataclass(frozen=True, slots=True)
class UnusedRow:
    """A row of one of the two tables. `address` are its runs in the list, empty where the list cannot select them."""

    unused: Unused
    name: str
    address: str


def use_context(devices: Sequence[Device], now: datetime, *, host: str, day_count: int) -> dict[str, Any]:
    since, names = first_moment(now, day_count), {device.pk: device for device in devices}
    known = {device.pk: device.host.registered_at for device in devices}
    held = held_since(since)
    measured = settings_measured_since(since)
    runs = [run for run in measured[:RUNS_MAX] if not host or run.device_id in names]
    used = sorted(use_by_day(held[:HELD_MAX], known, now, day_count), key=lambda use: -use.hours)
    pictured = used[:PICTURES_MAX]
    memory = memory_since([use.device_id for use in pictured], since)
    people, trainings = by_person(runs), by_training(runs)
    users = use_by_person(held[:HELD_MAX], known, now, day_count)
    most = max((day.hours for user in users[:PICTURES_MAX] for day in user.days), default=0.0)
    unused = by_person_and_day(runs)
    return {
        "ranges": RANGES,
        "day_count": day_count,
        "pictures": [_picture(names[use.device_id], use, memory) for use in pictured],
        "marks": day_marks([day.day for day in pictured[0].days]) if pictured else (),
        "more_pictures": max(0, len(used) - PICTURES_MAX),
        "users": [_picture_of_person(user, most, unused) for user in users[:PICTURES_MAX]],
        "more_users": max(0, len(users) - PICTURES_MAX),
        "most_hours": hours_text(most),
        "people": [
            UnusedRow(each, each.name or "no account", _runs({"user": each.name}) if each.name else "")
            for each in people[:ROWS_MAX]
        ],
        "more_people": max(0, len(people) - ROWS_MAX),
        "trainings": [
            UnusedRow(each, model_name(each.name or ""), _runs({"model": each.name})) for each in trainings[:ROWS_MAX]
        ],
        "more_trainings": max(0, len(trainings) - ROWS_MAX),
        "held_since": held[HELD_MAX].begins if len(held) > HELD_MAX else None,
        "runs_max": RUNS_MAX if len(measured) > RUNS_MAX else None,
    }


def _picture(device: Device, use: DeviceUse, memory: Mapping[tuple[int, date], DeviceDay]) -> DevicePicture:
    texts = [f"{each.day:%Y-%m-%d}: {hours_text(each.hours)}, {share_text(each.fraction)}" for each in use.days]
    share = share_text(use.fraction)
    description = f"Use of {device.name} by day: {share} of the time since {use.days[0].day}"
    held = DayPicture(description, hours_text(use.hours), day_bars([each.fraction for each in use.days], texts))
    known = [memory.get((device.pk, day.day)) for day in use.days]
    rows = zip(use.days[::-1], known[::-1], strict=True)
    used = tuple(DayText.of(day, read) for day, read in rows if day.hours or read)
    return DevicePicture(device, use, share, held, _memory_picture(device, known), _busy_picture(device, known), used)


def _memory_picture(device: Device, days: Sequence[DeviceDay | None]) -> DayPicture | None:
    """Draw the mean memory in use before the most, where it is known; None without any."""
    known = [day for day in days if day]
    if not known or not device.capacity_bytes:
        return None
    pairs = [(day.mean_used_bytes, day.most_used_bytes) if day else (0, 0) for day in days]
    texts = [
        f"{day.day}: {bytes_text(mean)} on average, {bytes_text(most)} at most" if day else ""
        for day, (mean, most) in zip(days, pairs, strict=True)
    ]
    means = day_bars([mean / device.capacity_bytes for mean, _ in pairs], texts)
    mosts = day_bars([most / device.capacity_bytes for _, most in pairs], texts, "most")
    mean = bytes_text(sum(day.used_sum_bytes for day in known) // sum(day.reading_count for day in known))
    most = bytes_text(max(day.most_used_bytes for day in known))
    description = f"Memory in use on {device.name} by day: {mean} on average, {most} at most"
    return DayPicture(description, mean, mosts + means, most)


def _busy_picture(device: Device, days: Sequence[DeviceDay | None]) -> DayPicture | None:
    """Draw the days of which a driver told how busy the GPU was, for any program; None without any."""
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
    return DayPicture(description, share, day_bars([share or 0.0 for share in shares], texts))


def _picture_of_person(use: PersonUse, most: float, unused: Mapping[tuple[str | None, date], Unused]) -> PersonPicture:
    texts = [f"{each.day:%Y-%m-%d}: {hours_text(each.hours)}" for each in use.days]
    name, hours = use.name or "no account", hours_text(use.hours)
    description = f"Use by {name} by day: {hours} since {use.days[0].day}"
    held = DayPicture(description, hours, day_bars([each.hours / most for each in use.days], texts))
    used = tuple((DayText.of(day), unused.get((use.name, day.day))) for day in use.days[::-1] if day.hours)
    return PersonPicture(name, use, held, used)


def hours_text(hours: float) -> str:
    """Write a span in hours, one below an hour in minutes; one that is above nothing never reads as nothing."""
    if hours >= 1:
        return f"{hours:,.1f} h"
    return "less than 1 min" if 0 < hours < 1 / 60 else f"{hours * 60:.0f} min"


def share_text(fraction: float) -> str:
    """Write a share of the time; one that is above nothing never reads as nothing."""
    return "less than 0.1 %" if 0 < fraction < 0.001 else percent(fraction)


def _runs(query: Mapping[str, Any]) -> str:
    return f"?{urlencode(query)}"
