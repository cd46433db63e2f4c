"""Typed values from the environment. An invalid value is refused, with the variable's name."""

from __future__ import annotations

import math
import os
import re
import secrets
import shlex
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def env_text(name: str, default: str = "", *, environ: Mapping[str, str] = os.environ) -> str:
    return environ.get(name, default).strip()


def env_bool(name: str, default: bool = False, *, environ: Mapping[str, str] = os.environ) -> bool:
    """Read `1 true yes on` or `0 false no off`; an empty value is false."""
    if name not in environ:
        return default
    value = environ[name].strip().lower()
    if value not in _TRUE + _FALSE:
        raise ImproperlyConfigured(f"{name}={environ[name]!r}: must be 1 or 0 (also true/false, yes/no, on/off)")
    return value in _TRUE


def env_number(
    name: str, default: float, *, minimum: float, maximum: float, environ: Mapping[str, str] = os.environ
) -> float:
    """Read a finite number between `minimum` and `maximum`, both allowed."""
    text = env_text(name, environ=environ)
    try:
        value = float(text) if text else default
    except ValueError as exc:
        raise ImproperlyConfigured(f"{name}={text!r}: must be a number") from exc
    if not (math.isfinite(value) and minimum <= value <= maximum):
        raise ImproperlyConfigured(f"{name}={text!r}: must be from {minimum:g} to {maximum:g}")
    return value


def env_list(name: str, default: tuple[str, ...] = (), *, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Read a list separated by commas, without blanks. A `*` is refused: each item must be named."""
    if name not in environ:
        return list(default)
    names = [word.strip() for word in environ[name].split(",") if word.strip()]
    if "*" in names:
        raise ImproperlyConfigured(f"{name}: '*' is not allowed; name each one")
    return names


def env_networks(name: str, *, environ: Mapping[str, str] = os.environ) -> list[IPv4Network | IPv6Network]:
    """Read IP addresses and networks separated by commas, such as `127.0.0.1, 10.1.0.0/16`."""
    try:
        return [ip_network(text) for text in env_list(name, environ=environ)]
    except ValueError as exc:
        raise ImproperlyConfigured(f"{name}: {exc}; must be addresses or networks, such as 10.1.0.0/16") from exc


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of actions per period."""

    number: int
    period_seconds: float


_PERIODS = {"s": 1.0, "min": 60.0, "hour": 3600.0, "day": 86_400.0}
_RATE = re.compile(r"([1-9][0-9]{0,8})/(s|min|hour|day)", re.ASCII)


def env_rate(name: str, default: str, *, environ: Mapping[str, str] = os.environ) -> Rate:
    """Read a rate such as `60/min`: a positive whole number per `s`, `min`, `hour` or `day`."""
    text = env_text(name, environ=environ) or default
    found = _RATE.fullmatch(text)
    if found is None:
        raise ImproperlyConfigured(f"{name}={text!r}: must be a number per {', '.join(_PERIODS)}, such as 60/min")
    return Rate(int(found[1]), _PERIODS[found[2]])


def env_origins(name: str, *, environ: Mapping[str, str] = os.environ) -> tuple[bool, list[str]]:
    """Return whether all origins are allowed (a single `*`), and the named ones."""
    if env_text(name, environ=environ) == "*":
        return True, []
    return False, env_list(name, environ=environ)


def env_url(name: str, *, environ: Mapping[str, str] = os.environ) -> str:
    """Read an http(s) address without a path, such as `https://lab.example`; empty where the variable is not set."""
    text = env_text(name, environ=environ).rstrip("/")
    if text and not re.fullmatch(r"https?://[A-Za-z0-9._:\[\]-]+", text):
        raise ImproperlyConfigured(f"{name}={text!r}: must be an address without a path, such as https://lab.example")
    return text


def env_path(name: str, default: Path, *, environ: Mapping[str, str] = os.environ) -> Path:
    """Read an absolute path; a relative one is refused, because it would depend on the working directory."""
    text = env_text(name, environ=environ)
    path = Path(text).expanduser() if text else default
    if not path.is_absolute():
        raise ImproperlyConfigured(f"{name}={text!r}: must be an absolute path")
    return path


def env_file(name: str, *, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Read the absolute path of a file that exists; None where the variable is not set."""
    if not env_text(name, environ=environ):
        return None
    path = env_path(name, Path("/"), environ=environ)
    if not path.is_file():
        raise ImproperlyConfigured(f"{name}={str(path)!r}: there is no such file")
    return path


def env_command(name: str, default: Sequence[str], *, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Read a command line, quoted as for a shell; it is executed without a shell."""
    try:
        return shlex.split(env_text(name, environ=environ)) or list(default)
    except ValueError as exc:
        raise ImproperlyConfigured(f"{name}: not a command line ({exc})") from exc


def writable_folder(path: Path, *, remedy: str) -> Path:
    """Create the folder if it is missing; refuse one that cannot be written."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise ImproperlyConfigured(f"{path}: cannot create this folder ({exc.strerror}); {remedy}") from exc
    if not os.access(path, os.W_OK | os.X_OK):
        raise ImproperlyConfigured(f"{path}: this folder cannot be written (read-only, or not ours); {remedy}")
    return path


def writable_file(name: str | Path, *, remedy: str) -> None:
    """Refuse an SQLite file that cannot be written. SQLite writes next to its file, so the folder is checked too."""
    path = Path(name)
    if str(name) == ":memory:":
        return
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise ImproperlyConfigured(f"{path.parent}: the database's folder is missing or cannot be written; {remedy}")
    if path.exists() and not os.access(path, os.W_OK):
        raise ImproperlyConfigured(f"{path}: the database cannot be written (read-only, or not ours); {remedy}")


def keep_private(name: str | Path) -> None:
    """Remove other users' right to read this SQLite file, and SQLite's files next to it, where we own them.

    Files created before version 0.5, or with another umask, could be read by every user of the machine.
    """
    for file in (Path(f"{name}{end}") for end in ("", "-wal", "-shm")):
        with suppress(OSError):  # missing, or owned by another user
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & 0o077:
                file.chmod(mode & 0o700)


def stored_secret(path: Path) -> str:
    """Read the secret in `path`, created on first use. Two processes that start together get the same one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(50))
            path.hardlink_to(draft)  # unlike a rename, this never replaces a file that another process has just created
        except FileExistsError:
            pass
        except OSError as exc:  # as on a full disk
            raise ImproperlyConfigured(f"{path}: cannot be written ({exc.strerror})") from exc
        finally:
            draft.unlink(missing_ok=True)
    return path.read_text().strip()
