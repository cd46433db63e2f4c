"""Records changes automatically: rows of these kinds that are saved or deleted, and their many-to-many lists.

Only columns that people set are compared, not what workers report of a device. Of a password only the fact of
a change is recorded, never its hash.

Django sends no signals for `QuerySet.update()` and `bulk_create()`: code that uses them on such rows calls `record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save

from analysis.audit.record import kind_of, record, record_changes
from analysis.models import AllowedHost, Device, GpuPrice, Host, Quota, RetentionRule, SavedView

_UPKEEP = ("drained", "maintenance_from", "maintenance_until", "maintenance_note")
_HIDDEN = {"password": "(changed)"}
_BEFORE = "_audit_before"


@dataclass(frozen=True, slots=True)
class Tracked:
    """Columns and lists of one kind of row. The creation of devices and hosts, by their workers, is not recorded."""

    columns: tuple[str, ...]
    lists: tuple[str, ...] = ()
    made_by_people: bool = True


TRACKED: Mapping[type[Model], Tracked] = {
    Device: Tracked(("price_per_hour_usd", "enabled", *_UPKEEP), ("allowed_users", "allowed_groups"), False),
    Host: Tracked(_UPKEEP, made_by_people=False),
    GpuPrice: Tracked(("gpu", "price_per_hour_usd", "source", "valid_from")),
    User: Tracked(
        ("username", "first_name", "last_name", "email", "password", "is_active", "is_staff", "is_superuser"),
        ("groups", "user_permissions"),
    ),
    Group: Tracked(("name",), ("permissions",)),
    Quota: Tracked(
        ("user", "group", "runs_waiting_max", "runs_per_day_max", "time_budget_max_seconds"),
        ("devices",),
    ),
    SavedView: Tracked(("owner", "name", "query", "is_shared")),
    AllowedHost: Tracked(("host", "note")),
    RetentionRule: Tracked(("what", "days")),
}


def start_tracking() -> None:
    for model, tracked in TRACKED.items():
        pre_save.connect(_remember, sender=model, dispatch_uid="audit")
        post_save.connect(_record_saved, sender=model, dispatch_uid="audit")
        post_delete.connect(_record_deleted, sender=model, dispatch_uid="audit")
        for name in tracked.lists:
            m2m_changed.connect(_list_changed(model, name), sender=getattr(model, name).through, weak=False)


def _remember(sender: type[Model], instance: Model, raw: bool, update_fields: Any, **kwargs: Any) -> None:
    """Remember the stored values. Nothing is read for a save that changes none of the columns."""
    columns = TRACKED[sender].columns
    touched = [name for name in columns if update_fields is None or name in update_fields]
    before = None
    if touched and not raw and not instance._state.adding:
        before = sender._base_manager.filter(pk=instance.pk).values(*touched).first()
    setattr(instance, _BEFORE, before)


def _record_saved(sender: type[Model], instance: Model, created: bool, raw: bool, **kwargs: Any) -> None:
    before = instance.__dict__.pop(_BEFORE, None)
    kind = kind_of(sender)
    if created and TRACKED[sender].made_by_people and not raw:
        record(f"{kind}.create", target=instance, after=_shown(_values(instance, TRACKED[sender].columns)))
    if before is None:
        return
    after = _values(instance, before)
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        details = [_shown({name: values[name] for name in changed}) for values in (before, after)]
        record(f"{kind}.change", target=instance, before=details[0], after=details[1])


def _record_deleted(sender: type[Model], instance: Model, **kwargs: Any) -> None:
    before = _shown(_values(instance, TRACKED[sender].columns))
    record(f"{kind_of(sender)}.delete", target=instance, before=before)


def _list_changed(owner: type[Model], name: str) -> Any:

    def receive(instance: Model, action: str, reverse: bool, model: type[Model], pk_set: Any, **kwargs: Any) -> None:
        if action == "pre_clear":  # the list is about to be emptied
            members = owner._base_manager.filter(**{name: instance.pk}) if reverse else getattr(instance, name)
            pk_set = list(members.values_list("pk", flat=True))
        if action not in ("post_add", "post_remove", "pre_clear") or not pk_set:
            return
        others = model._base_manager.filter(pk__in=pk_set)
        lists = [(other, [instance]) for other in others] if reverse else [(instance, others)]
        changed = [(row, {name: sorted(map(str, members))}) for row, members in lists]
        record_changes(
            (f"{kind_of(type(row))}.change", row, *((None, list_) if action == "post_add" else (list_, None)))
            for row, list_ in changed
        )

    return receive


def _values(instance: Model, columns: Iterable[str]) -> dict[str, Any]:
    attributes = {field.name: field.attname for field in instance._meta.concrete_fields}
    return {name: getattr(instance, attributes[name]) for name in columns}


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _HIDDEN.get(name, value) for name, value in values.items()}
