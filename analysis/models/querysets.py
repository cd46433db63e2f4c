"""Named queries of runs, devices and measurements. Nothing here writes."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import Exists, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Lower, Now, StrIndex

from analysis.models.device_access import denied_q, users_denied
from analysis.models.run_states import ON_DEVICES, SEARCHES, TELL_UNUSED, State
from analysis.permissions import may_manage, may_start
from engine.estimate.what_to_change import Scope
from engine.facts.run_kind import Question, RunKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

    from analysis.models import Attempt, Device, Measurement, Run, RunLog  # noqa: F401
    from analysis.models.device import DeviceWithActivity

SEEN_LATELY = timedelta(seconds=60)
"""A device counts as up for this time after its last sign of life, in which a live worker gives many."""

FOREIGN_SHARE_MAX = 0.05
"""Share of a device's memory above which foreign use lets only runs that accept a shared device start."""


class DeviceQuerySet(models.QuerySet["Device"]):
    def enabled(self) -> DeviceQuerySet:
        return self.filter(enabled=True)

    def on_host(self, name: str) -> DeviceQuerySet:
        return self.filter(host__name=name)

    def taking_runs(self) -> DeviceQuerySet:
        """Keep enabled devices that are not drained or in maintenance, nor their hosts, by the database's clock."""
        return self.enabled().exclude(_in_maintenance("")).exclude(_in_maintenance("host__"))

    def seen_lately(self) -> DeviceQuerySet:
        return self.filter(last_seen_at__gte=Now() - SEEN_LATELY)

    def with_is_up(self) -> DeviceQuerySet:
        """Add `is_up`: whether the device's worker is alive, by the database's clock."""
        living = self.model.objects.seen_lately().filter(pk=OuterRef("pk"))
        return self.annotate(is_up=Exists(living))

    def idle(self) -> DeviceQuerySet:
        holding = apps.get_model("analysis", "Run").objects.holding()
        return self.filter(held_for=None).exclude(Exists(holding.filter(device=OuterRef("pk"))))

    def unheld(self) -> DeviceQuerySet:
        """Keep devices that no other program held when their workers last looked. A claim knows it by the lock."""
        return self.filter(held_process="")

    def with_activity(self) -> models.QuerySet[DeviceWithActivity]:
        """Add `is_up`, `takes_runs` and `running_id`, the run it executes, in one statement."""
        takes_runs = Exists(self.model.objects.taking_runs().filter(pk=OuterRef("pk")))
        holding = apps.get_model("analysis", "Run").objects.holding().filter(device=OuterRef("pk"))
        # only Django's generic QuerySet has types of annotations, not a subclass for one model
        return self.with_is_up().annotate(  # type: ignore[return-value]
            takes_runs=takes_runs,
            running_id=Coalesce("held_for", Subquery(holding.values("pk")[:1]), output_field=models.BigIntegerField()),
        )

    def allowing(self, user: User | AnonymousUser | None) -> DeviceQuerySet:
        """Keep devices with an empty allow-list, or with this person or group on it; quotas narrow this further."""
        person = user if user is not None and user.is_authenticated else None
        open_to_all = Q(allowed_users=None, allowed_groups=None)
        listed = self.filter(
            pk__in=self.model.objects.filter(
                open_to_all | Q(allowed_users=person) | Q(allowed_groups__user=person) if person else open_to_all
            ).values("pk")
        )
        return listed.exclude(denied_q(person)) if person else listed

    def best_first(self) -> DeviceQuerySet:
        """Sort in the order of `auto`: hosts that are up first, accelerators before the CPU, larger ones first."""
        is_away = models.Case(models.When(last_seen_at__gte=Now() - SEEN_LATELY, then=0), default=1)
        is_cpu = models.Case(models.When(kind="cpu", then=1), default=0)
        return self.order_by(is_away, is_cpu, "-capacity_bytes", "id")


_DeviceManager = models.Manager.from_queryset(DeviceQuerySet)


class DeviceManager(_DeviceManager["Device"]):
    """`Device.objects`: the devices that workers of this portal registered. `Device.all_devices` has reported ones."""

    def get_queryset(self) -> DeviceQuerySet:
        return DeviceQuerySet(self.model, using=self._db).filter(is_reported=False)


class RunQuerySet(models.QuerySet["Run"]):
    def update(self, **columns: Any) -> int:
        """Update the columns and `updated_at`: `auto_now` ignores an UPDATE, and pollers compare the column."""
        return super().update(**{"updated_at": Now(), **columns})

    def queued(self) -> RunQuerySet:
        return self.filter(state=State.QUEUED)

    def running(self) -> RunQuerySet:
        """Keep running runs, unordered: for the default order SQLite would walk the whole history."""
        return self.filter(state=State.RUNNING).order_by()

    def holding(self) -> RunQuerySet:
        """Keep running runs of this portal's workers. What a report says of a device holds none."""
        return self.running().filter(reported_from="")

    def on(self, device: Device) -> RunQuerySet:
        """Keep the runs on this device, alone or with further devices still held for them."""
        held_for = apps.get_model("analysis", "Device").objects.filter(pk=device.pk).values("held_for")
        return self.filter(Q(device=device) | Q(pk__in=held_for))

    def measuring(self) -> RunQuerySet:
        """Keep the searches for a batch size on a device: the runs whose figures count as measured."""
        return self.filter(kind__in=SEARCHES)

    def telling_unused(self) -> RunQuerySet:
        """Keep the runs that measured what a training leaves of a memory that they know."""
        return self.filter(kind__in=TELL_UNUSED, limit_bytes__isnull=False)

    def of_own_scripts(self) -> RunQuerySet:
        """Keep the runs of people's own training code: they alone have no precision, and that column has an index."""
        return self.filter(kind=RunKind.COMMAND, precision="")

    def of_command(self, name: str) -> RunQuerySet:
        """Keep the runs of one registered command that this portal made; the index of the model finds them."""
        return self.filter(model=name, kind=RunKind.COMMAND, reported_from="")

    def trusted(self) -> RunQuerySet:
        """Keep runs measured here or by a trusted sender: advice, baselines and reuse read through here."""
        return self.filter(is_trusted=True)

    def reported(self) -> RunQuerySet:
        return self.exclude(reported_from="")

    def on_devices(self) -> RunQuerySet:
        """Keep the runs that wait for a device of this portal or hold one: measurements and validations."""
        return self.filter(kind__in=ON_DEVICES, reported_from="")

    def validating(self) -> RunQuerySet:
        return self.filter(kind__published=RunKind.VALIDATION)  # by the index of the lists

    def estimating(self) -> RunQuerySet:
        return self.filter(kind__published=RunKind.ESTIMATE)

    def not_estimating(self) -> RunQuerySet:
        """Keep what ran on a device, here or elsewhere: all but estimates."""
        return self.exclude(kind=RunKind.ESTIMATE)

    def racing(self, kind: str) -> RunQuerySet:
        """Return the races of what runs of this kind train: of a model's settings, or of a command."""
        return self.filter(kind=RunKind.of(Question.FASTER, RunKind(kind).trained))

    def answering(self) -> RunQuerySet:
        return self.estimating().filter(spec__what_to_change__in=list(Scope))

    def held_by(self, run_id: int, token: str) -> RunQuerySet:
        """Keep the run if this token still owns it. Every write to a running run goes through here."""
        return self.filter(pk=run_id, token=token, state=State.RUNNING)

    def waiting_for(self, device: Device) -> RunQuerySet:
        """Keep runs that may start on this device, oldest first: the same rule as `scheduling.may_run`."""
        # most runs name no class, and every waiting row is examined: LIKE would take three times as long
        name = Value(device.name.lower(), output_field=models.TextField())
        is_in_name = Q(requested_device_class="") | Q(class_at__gt=0)
        waiting = self.on_devices().queued().filter(cancel_requested=False)
        waiting = waiting.alias(class_at=StrIndex(name, Lower("requested_device_class")))
        waiting = waiting.filter(
            Q(requested_device=device) | Q(requested_device=None, requested_kind=device.kind) & is_in_name
        )
        waiting = waiting.filter(Q(needs_bytes=None) | Q(needs_bytes__lte=device.capacity_bytes))
        if is_partition(device):
            waiting = waiting.filter(device_count=1)
        if (capability := compute_capability(device)) is not None:
            enough = Q(needs_compute_capability__lte=capability)
            waiting = waiting.filter(Q(needs_compute_capability=None) | enough)
        if device.is_shared:
            waiting = waiting.filter(accepts_shared_device=True)
        return waiting.of_people_allowed_on(device).order_by("created_at", "id")

    def waiting_estimates(self) -> RunQuerySet:
        return self.estimating().queued().filter(cancel_requested=False).order_by("created_at", "id")

    def grading_estimates(self) -> RunQuerySet:
        """Keep measured runs that had an estimate before, the latest first; no detail is loaded."""
        graded = self.measuring().trusted().filter(estimate_peak_error__isnull=False, finished_at__isnull=False)
        return graded.defer("result", "spec").order_by("-finished_at", "-id")

    def of_people_allowed_on(self, device: Device) -> RunQuerySet:
        users, groups = device.allowed_users.all(), device.allowed_groups.all()
        listed = get_user_model().objects.filter(Q(pk__in=users.values("pk")) | Q(groups__in=groups.values("pk")))
        listed_runs = self.filter(~Exists(users) & ~Exists(groups) | Q(requested_by__in=listed.values("pk")))
        return listed_runs.exclude(requested_by__in=users_denied(device).values("pk"))

    def last_started(self, people: Collection[int | None]) -> dict[int | None, datetime]:
        """Return when each of these people last started a run; the key None stands for runs without a person."""
        started = self.filter(started_at__isnull=False).order_by("-started_at").values("started_at")
        users = get_user_model().objects.filter(pk__in=[person for person in people if person is not None])
        latest = users.annotate(latest=Subquery(started.filter(requested_by=OuterRef("pk"))[:1]))
        found: dict[int | None, datetime | None] = dict(latest.values_list("pk", "latest"))
        if None in people:
            found[None] = started.filter(requested_by=None).values_list("started_at", flat=True).first()
        return {person: at for person, at in found.items() if at is not None}

    def newest_first(self) -> RunQuerySet:
        return self.order_by("-created_at", "-id")

    def changeable_by(self, user: User) -> RunQuerySet:
        """Keep the runs that this person may change: their own, or all for GPU managers."""
        if may_manage(user):
            return self.all()
        return self.filter(requested_by=user) if may_start(user) else self.none()

    def with_places(self) -> RunQuerySet:
        return self.select_related("device__host", "requested_device__host", "requested_by")

    def for_history(self) -> RunQuerySet:
        return self.with_places().defer("result").newest_first()


_RunManager = models.Manager.from_queryset(RunQuerySet)


class RunManager(_RunManager["Run"]):
    """`Run.objects`: runs that are not deleted. `Run.all_runs` has all, for restoring and for links to deleted runs."""

    def get_queryset(self) -> RunQuerySet:
        return RunQuerySet(self.model, using=self._db).filter(deleted_at=None)


class MeasurementQuerySet(models.QuerySet["Measurement"]):
    def of(self, run: Run) -> MeasurementQuerySet:
        return self.filter(run=run, attempt=run.attempt).order_by("sequence")


class RunLogQuerySet(models.QuerySet["RunLog"]):
    def of(self, run: Run) -> RunLogQuerySet:
        return self.filter(run=run, attempt=run.attempt).order_by("sequence")


def ids_if_few(rows: models.QuerySet[Any], most: int) -> list[int] | None:
    """Return the ids of these rows; None when there are more than `most`."""
    found = list(rows.values_list("pk", flat=True)[: most + 1])
    return found if len(found) <= most else None


def is_partition(device: Device) -> bool:
    """Whether it is a MIG instance: a process sees only one of those, so it never joins a device set."""
    return device.uuid.startswith("MIG-")


def compute_capability(device: Device) -> float | None:
    """Convert "9.0" to a number; None where the vendor has none, or another format."""
    try:
        return float(device.compute_capability)
    except ValueError:
        return None


def _in_maintenance(prefix: str) -> Q:
    """Return the condition for drained or in maintenance now. Without a start it has begun; without an end it lasts."""
    begins, ends = f"{prefix}maintenance_from", f"{prefix}maintenance_until"
    ends_later = Q(**{f"{ends}__gt": Now()})
    has_begun = Q(**{f"{begins}__lte": Now()}) & (Q(**{ends: None}) | ends_later)
    return Q(**{f"{prefix}drained": True}) | has_begun | (Q(**{begins: None}) & ends_later)
