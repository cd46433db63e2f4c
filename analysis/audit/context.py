"""On whose behalf this thread works right now: what an entry of the audit log and a line of the log say of it.

Threads serve one request after another. So what is known of a request is put here when it comes and taken away
when it is answered, whatever became of it: no thread inherits the person of an earlier request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(slots=True)
class Cause:
    """Of what happens now. The person is read off `request` as late as possible: they may sign in half-way through."""

    request_id: str = ""
    remote_address: str | None = None
    request: Any = None
    actor: User | None = None
    name: str = ""

    @property
    def person(self) -> User | None:
        user = self.actor or getattr(self.request, "user", None)
        return user if user is not None and user.is_authenticated else None


_cause: ContextVar[Cause | None] = ContextVar("memorymark_cause", default=None)


def cause_now() -> Cause:
    """Outside of any request: nobody's."""
    return _cause.get() or Cause()


@contextmanager
def caused_by(cause: Cause) -> Iterator[Cause]:
    """For as long as the block lasts, and never longer."""
    token = _cause.set(cause)
    try:
        yield cause
    finally:
        _cause.reset(token)


def acting(name: str) -> Any:
    """Name a part of the portal as the cause, for what it does by itself."""
    return caused_by(Cause(name=name))


def set_actor(user: User | None) -> None:
    """Who this request turned out to be of, where that is found out after the middleware. Outside of one: nothing."""
    cause = _cause.get()
    if cause is not None:
        cause.actor = user
