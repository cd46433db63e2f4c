"""Writes the audit log in the transaction of the change; actor and request id come from `analysis.audit.context`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model

from analysis.audit.context import WorkCause, cause_now
from analysis.audit.context import set_actor as set_actor
from analysis.models import AuditEntry
from analysis.models.audit import ACTION_LENGTH, TARGET_ID_LENGTH, TEXT_LENGTH

Target: TypeAlias = Model | tuple[str, str]
"""A row; or a kind and a number or name, for a target that is not a row or was not read."""

VALUE_LENGTH, ENTRY_LENGTH = 1_000, 10_000
_SEPARATOR_LENGTH = 4  # quotes, a comma, a blank
_BATCH = 500
_ENCODER = DjangoJSONEncoder()


def record(
    action: str, *, target: Target, before: Mapping[str, Any] | None = None, after: Mapping[str, Any] | None = None
) -> None:
    """Write one entry. `before` and `after` hold only what changed, and never a secret."""
    _entry(cause_now(), action, target, before, after).save(force_insert=True)


def record_many(
    action: str,
    targets: Iterable[Target],
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    record_changes((action, target, before, after) for target in targets)


def record_changes(
    changes: Iterable[tuple[str, Target, Mapping[str, Any] | None, Mapping[str, Any] | None]],
) -> None:
    cause = cause_now()
    entries = [_entry(cause, *change) for change in changes]
    AuditEntry.objects.bulk_create(entries, batch_size=_BATCH)


def kind_of(model: type[Model]) -> str:
    """Return the name of a model in entries: `run`, `device`, `gpuprice`."""
    return model._meta.model_name or ""


def _entry(
    cause: WorkCause, action: str, target: Target, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> AuditEntry:
    person = cause.person
    if isinstance(target, Model):
        kind, number, text = kind_of(target.__class__), str(target.pk), str(target)
    else:
        (kind, number), text = target, ""
    return AuditEntry(
        actor=person,
        actor_name=person.get_username() if person else cause.name,
        action=action[:ACTION_LENGTH],
        target_kind=kind,
        target_id=number[:TARGET_ID_LENGTH],
        target_text=text[:TEXT_LENGTH],
        before=None if before is None else storable(before),
        after=None if after is None else storable(after),
        request_id=cause.request_id,
        remote_address=cause.remote_address,
    )


def storable(value: Any) -> Any:
    """Convert a value for JSON. What is long is cut, and says by how much: nobody can shorten an entry later."""
    return _Entry().part_of(value)


class _Entry:
    """Cuts a value to one entry: long texts are shortened, and members beyond ENTRY_LENGTH are only counted."""

    def __init__(self) -> None:
        self._room = ENTRY_LENGTH

    def part_of(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            members = self._some(value.items(), lambda pair: tuple(map(self.part_of, (str(pair[0]), pair[1]))))
            return dict(each if isinstance(each, tuple) else ("...", each) for each in members)
        if isinstance(value, list | tuple | set | frozenset):
            return self._some(value, self.part_of)
        if not (value is None or isinstance(value, str | bool | int | float)):
            value = _plain(value)
        if isinstance(value, str):
            text = value.replace("\x00", "")
            value = text if len(text) <= VALUE_LENGTH else f"{text[:VALUE_LENGTH]} ... ({len(text)} characters)"
        self._room -= len(str(value)) + _SEPARATOR_LENGTH
        return value

    def _some(self, parts: Collection[Any], read: Callable[[Any], Any]) -> list[Any]:
        shown: list[Any] = []
        for number, part in enumerate(parts):
            if self._room <= 0:
                return [*shown, f"... ({len(parts) - number} more)"]
            shown.append(read(part))
        return shown


def _plain(value: Any) -> str:
    try:
        return str(_ENCODER.default(value))
    except TypeError:
        return str(value)
