"""PURE: the address of a portal and the token for it, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ..errors import SpecError

ADDRESS_VARIABLE, TOKEN_VARIABLE = "MEMORYMARK_REPORT_TO", "MEMORYMARK_TOKEN"


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send to; the token never appears in a text of this object."""

    url: str
    token: str | None = field(repr=False)


def address_of(given: str | None, environ: MutableMapping[str, str]) -> Address | None:
    """Return where to report to; None where no portal is named. Raises SpecError for what is no portal's address.

    What is given decides, and an empty text names none; only where it is None the environment does. The token is taken
    out of `environ`: no process that is started later, a training script among them, inherits it.
    """
    url = (environ.get(ADDRESS_VARIABLE, "") if given is None else given).strip()
    return Address(_checked(url), checked_token(environ.pop(TOKEN_VARIABLE, ""))) if url else None


@contextmanager
def token_put_back(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Put the token back at the end of the block: what goes on afterwards, as a notebook does, may report again."""
    token = environ.get(TOKEN_VARIABLE)
    try:
        yield
    finally:
        if token is not None:
            environ[TOKEN_VARIABLE] = token


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole or not url.isprintable() or " " in url:
        raise SpecError("report_to", "must be the address of a portal, such as https://memorymark.example.org/")
    if parts.username is not None or parts.password is not None:
        raise SpecError("report_to", f"must hold no user name and password: the token is read from {TOKEN_VARIABLE}")
    if parts.query or parts.fragment:
        raise SpecError("report_to", "must end with the portal's path: leave out ? and # with what follows")
    return url.rstrip("/")


def checked_token(text: str) -> str | None:
    """Return the token without surrounding blanks; None for an empty one. Its text is in no error."""
    token = text.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise SpecError("token", f"{TOKEN_VARIABLE} holds characters that no token has")
    return token or None
