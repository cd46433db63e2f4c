"""PURE: the hours of each day in which a run held a device, by device and by person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Held:
    """A span in which a run of `person` (None: no account) held a device; `is_further` if it held another one too."""

    device_id: int
    begins: datetime
    ends: datetime
    person: str | None = None
    is_further: bool = False


@dataclass(frozen=True, slots=True)
class DayOfUse:
    """One day (UTC) of one device; `of_hours` are its past hours with known use, 24 on a full day."""

    day: date
    hours: float
    of_hours: float

    @property
    def fraction(self) -> float:
        return min(1.0, self.hours / self.of_hours) if self.of_hours else 0.0


@dataclass(frozen=True, slots=True)
class Use:
    """The days of a device or a person, oldest first, and how many executions of runs they hold."""

    days: tuple[DayOfUse, ...]
    run_count: int

    @property
    def hours(self) -> float:
        return sum(each.hours for each in self.days)

    @property
    def fraction(self) -> float:
        of_hours = sum(each.of_hours for each in self.days)
        return min(1.0, self.hours / of_hours) if of_hours else 0.0


def first_moment(now: datetime, count: int) -> datetime:
    """Return the beginning of the first of `count` days (UTC), of which today is the last."""
    return datetime.combine(now.astimezone(UTC).date() - DAY * (count - 1), time.min, UTC)


def use_by_day(spans: Iterable[Held], known_since: Mapping[int, datetime], now: datetime, count: int) -> dict[int, Use]:
    """Add up the spans by device and day, for each device that is known. Time in which two runs overlap counts once."""
    begins = first_moment(now, count)
    by_device: dict[int, list[Held]] = defaultdict(list)
    for span in spans:
        if span.ends > begins and span.begins < now:
            by_device[span.device_id].append(span)
    return {device: _use_of(by_device[device], since, begins, now, count) for device, since in known_since.items()}


def use_by_person(
    spans: Iterable[Held], known_since: Mapping[int, datetime], now: datetime, count: int
) -> dict[str | None, Use]:
    """Add up the spans by person and day, who used most first; `of_hours` are of the devices that each one used."""
    begins = first_moment(now, count)
    by_person = defaultdict[str | None, list[Held]](list)
    for span in spans:
        if span.device_id in known_since and span.ends > begins and span.begins < now:
            by_person[span.person].append(span)
    uses = ((name, _use_of_person(own, known_since, now, count)) for name, own in by_person.items())
    people = [(name, use) for name, use in uses if use.hours]
    return dict(sorted(people, key=lambda person: (-person[1].hours, person[0] or "")))


def _use_of_person(spans: list[Held], known_since: Mapping[int, datetime], now: datetime, count: int) -> Use:
    used = use_by_day(spans, {span.device_id: known_since[span.device_id] for span in spans}, now, count)
    days = (
        DayOfUse(of_devices[0].day, sum(day.hours for day in of_devices), sum(day.of_hours for day in of_devices))
        for of_devices in zip(*(use.days for use in used.values()), strict=True)
    )
    return Use(tuple(days), sum(not span.is_further for span in spans))


def _use_of(spans: list[Held], since: datetime, begins: datetime, now: datetime, count: int) -> Use:
    hours: dict[date, float] = defaultdict(float)
    reached = begins
    for span in sorted(spans, key=lambda span: span.begins):
        at, end = max(span.begins, reached), min(span.ends, now)
        while at < end:
            midnight = datetime.combine(at.astimezone(UTC).date() + DAY, time.min, UTC)
            stop = min(end, midnight)
            hours[at.astimezone(UTC).date()] += _hours(stop - at)
            at = stop
        reached = max(reached, end)
    starts = [begins + DAY * index for index in range(count)]
    since = min([since, *(span.begins for span in spans)])
    over = (max(timedelta(), min(now, each + DAY) - max(each, since)) for each in starts)
    days = (DayOfUse(each.date(), hours[each.date()], _hours(span)) for each, span in zip(starts, over, strict=True))
    return Use(tuple(days), len(spans))


def _hours(span: timedelta) -> float:
    return span.total_seconds() / 3600
