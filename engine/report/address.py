"""The address of a portal and the token for it, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import SpecError

ADDRESS_VARIABLE, TOKEN_VARIABLE = "MEMORYMARK_REPORT_TO", "MEMORYMARK_TOKEN"
TOKEN_FILE_VARIABLE = f"{TOKEN_VARIABLE}_FILE"


@dataclass(frozen=True, slots=True)
class Address:
    """The portal's address and token; the token does not appear in the object's text."""

    url: str
    token: str | None = field(repr=False)


def address_of(given: str | None, environ: MutableMapping[str, str]) -> Address | None:
    """Return where to report to; None where no portal is named. Raises SpecError for an invalid address.

    `given` decides (empty: none), else the environment, whose token is removed: no later process inherits it.
    """
    url = (environ.get(ADDRESS_VARIABLE, "") if given is None else given).strip()
    return Address(_checked(url), token_of(environ.pop(TOKEN_VARIABLE, ""), environ)) if url else None


def token_of(given: str, environ: Mapping[str, str]) -> str | None:
    """Return the given token, or else the one in the file that the environment names. Raises SpecError."""
    path = environ.get(TOKEN_FILE_VARIABLE, "").strip()
    if given.strip() or not path:
        return checked_token(given)
    try:
        return checked_token(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise SpecError("token", f"{TOKEN_FILE_VARIABLE}: {path} cannot be read: {reason}") from exc


@contextmanager
def token_put_back(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Put the token back at the end of the block: a program that goes on, such as a notebook, may report again."""
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
    """Return the token without surrounding blanks; None for an empty one. No error contains it."""
    token = text.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise SpecError("token", f"{TOKEN_VARIABLE} holds characters that no token has")
    return token or None
