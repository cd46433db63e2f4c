"""The cause of the current work in this thread: actor and request, for the audit log and for log lines.

Threads serve one request after another. So the context is set when a request arrives and removed when it is
answered, also after an error: no thread inherits the person of an earlier request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(slots=True)
class WorkCause:
    """The actor and request. The person is read from `request` as late as possible: a request may sign them in."""

    request_id: str = ""
    remote_address: str | None = None
    request: Any = None
    actor: User | None = None
    name: str = ""

    @property
    def person(self) -> User | None:
        user = self.actor or getattr(self.request, "user", None)
        return user if user is not None and user.is_authenticated else None


_cause: ContextVar[WorkCause | None] = ContextVar("memorymark_cause", default=None)


def cause_now() -> WorkCause:
    return _cause.get() or WorkCause()


@contextmanager
def caused_by(cause: WorkCause) -> Iterator[WorkCause]:
    token = _cause.set(cause)
    try:
        yield cause
    finally:
        _cause.reset(token)


def acting(name: str) -> Any:
    return caused_by(WorkCause(name=name))


def set_actor(user: User | None) -> None:
    """Set the person of the current request, where authentication follows the middleware. No-op outside a request."""
    cause = _cause.get()
    if cause is not None:
        cause.actor = user


class RequestIdFilter(logging.Filter):
    """Passes every line of the log, and gives the formatter the id of its request."""

    def filter(self, record: logging.LogRecord) -> bool:
        request_id = cause_now().request_id
        record.request_text = f" [{request_id}]" if request_id else ""
        return True
