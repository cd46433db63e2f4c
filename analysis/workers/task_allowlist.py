"""What the queue may ask of a worker: our own task names, without arguments. Everything else is refused unopened.

A message is a pickled task, signed with SECRET_KEY (HMAC-SHA256 over the whole pickle and its time). django-q2 checks
the signature, unpickles, and imports whatever the function's name, its `hook` and its `chain` say: whoever learns the
key and may write to the queue's table runs code on every host with a card. Here the pickle may name no code at all, and
a task must be one of ours: so the key signs a message that says "look", and no more.
"""

from __future__ import annotations

import io
import pickle
import zlib
from typing import Any

from django.core.signing import BadSignature
from django_q import core_signing, pusher
from django_q.conf import Conf

TASKS = frozenset(
    {"analysis.workers.tasks.wake", "analysis.workers.tasks.housekeep", "analysis.workers.tasks.estimate"}
)
# messages that a version before 0.4 left in the queue; they may go when nobody upgrades from one any more
_FORMER_NAMES = {f"analysis.tasks.{name.rpartition('.')[2]}": name for name in TASKS}
_PARTS = frozenset({"id", "name", "func", "args", "kwargs", "started", "cluster", "ack_failure"})
_TYPES = frozenset({("datetime", "datetime"), ("datetime", "timezone"), ("datetime", "timedelta")})
_BROKEN = (pickle.UnpicklingError, zlib.error, EOFError, ValueError, TypeError, LookupError, AttributeError)


class Refused(BadSignature):
    """A message that django-q2 then drops, as it does one with a wrong signature."""


class SafeUnpickler:
    """Reads a pickle of plain values and times; one that names anything else to be called is refused."""

    @staticmethod
    def loads(data: bytes) -> Any:
        try:
            return _Unpickler(io.BytesIO(data)).load()
        except _BROKEN as exc:
            raise Refused(f"not a task: {exc}") from exc


class _Unpickler(pickle.Unpickler):
    """Looks nothing up beside the parts of a time."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _TYPES:
            raise Refused(f"{module}.{name} in a task")
        return super().find_class(module, name)


class SignedTaskReader:
    """Stands in for django-q2's SignedPackage where messages are taken in."""

    @staticmethod
    def loads(payload: str) -> dict[str, Any]:
        try:
            task = core_signing.loads(payload, key=Conf.SECRET_KEY, salt=Conf.PREFIX, serializer=SafeUnpickler)
        except _BROKEN as exc:
            raise Refused(f"no message of this queue: {exc}") from exc
        return _own(task)


def guard_install() -> None:
    """For this process and its forks; called before the cluster starts, which has to fork (`workers.worker`)."""
    pusher.SignedPackage = SignedTaskReader


def _own(task: Any) -> dict[str, Any]:
    if isinstance(task, dict) and isinstance(task.get("func"), str):
        task["func"] = _FORMER_NAMES.get(task["func"], task["func"])
    if not isinstance(task, dict) or task.get("func") not in TASKS:
        raise Refused(f"no task of ours: {task!r:.200}")
    if task.get("args") or task.get("kwargs") or not _PARTS.issuperset(task):
        raise Refused(f"{task['func']} takes no arguments, hooks or further tasks: {sorted(task)}")
    return task
