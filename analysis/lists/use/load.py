"""Reads what stored runs say of the use of devices: never more than the newest rows, in the order of an index."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from django.conf import settings

from analysis.lists.use.days import Held
from analysis.lists.use.unused import FIGURES, MeasuredSetting
from analysis.models import Attempt, Device, DeviceDay, Run
from analysis.presentation.kinds import BY_KIND
from analysis.runs.columns.series import SeriesKey

HELD_MAX = 10_000
"""Executions of runs that are read, the latest first."""
RUNS_MAX = 2_000
"""Finished runs whose unused memory is read, the latest first."""


def held_since(since: datetime) -> list[Held]:
    """Read when runs held a device, latest first, one more than is counted; without untrusted reports.

    An execution without an end counts to its last sign of life: it may have died since.
    """
    longest = timedelta(seconds=settings.RUN_TIME_BUDGET_MAX_SECONDS)  # one that began before may reach into the days
    started = Attempt.objects.filter(started_at__gte=since - longest, device__isnull=False, run__is_trusted=True)
    columns = ("device", "device__host", "devices", "started_at", "ended_at", "run__heartbeat_at")
    rows = list(started.order_by("-started_at").values_list(*columns, "run__requested_by__username")[: HELD_MAX + 1])
    number_of = _numbers({host for _, host, names, *_ in rows if names})
    return [
        Held(each, begins, ended or alive or begins, person, is_further=place > 0)
        for device, host, names, begins, ended, alive, person in rows
        for place, each in enumerate([number_of.get((host, name)) for name in names] if names else [device])
        if each is not None
    ]


def _numbers(hosts: set[int]) -> dict[tuple[int, str], int]:
    if not hosts:
        return {}
    rows = Device.objects.filter(host__in=hosts).values_list("host", "device", "pk")
    return {(host, name): number for host, name, number in rows}


def memory_since(device_ids: Iterable[int], since: datetime) -> dict[tuple[int, date], DeviceDay]:
    """Read the memory in use on these devices, by device and day (UTC)."""
    rows = DeviceDay.objects.filter(device__in=device_ids, day__gte=since.astimezone(UTC).date())
    return {(row.device_id, row.day): row for row in rows}


def settings_measured_since(since: datetime, until: datetime | None = None) -> list[MeasuredSetting]:
    """Read what searches and watches found, newest first, one more than is counted; without deleted and untrusted runs.

    Only results know a limit: by state or device the database would sort all such runs instead.
    """
    ended = Run.objects.telling_unused().trusted().filter(finished_at__gte=since)
    if until is not None:
        ended = ended.filter(finished_at__lt=until)
    columns = ("requested_by__username", "model", "kind", "spec", "device_name", "device", "finished_at")
    return [
        MeasuredSetting.of(
            run,
            SeriesKey.of_run(run["spec"], run["device_name"]),
            training=run["model"],
            is_own=BY_KIND[run["kind"]].runs_own_code,
            person=run["requested_by__username"],
            device_id=run["device"],
            day=run["finished_at"].astimezone(UTC).date(),
        )
        for run in ended.order_by("-finished_at").values(*columns, *FIGURES)[: RUNS_MAX + 1]
        if not run["spec"].get("emulate_ranks")  # what one device held in place of others was measured on none of them
    ]
