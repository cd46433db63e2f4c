"""System checks: settings that would repeat runs or lose writes are refused at start, with the remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from analysis.runs.commands import registered_commands
from engine.errors import SpecError
from engine.estimate.gpus import gpus
from engine.text.masking import NAMES_VARIABLE, secret_names

QUEUE_NAME = "memorymark"
_SQLITE = "django.db.backends.sqlite3"
_MOUNTS = Path("/proc/mounts")
_NETWORK_FILE_SYSTEM = re.compile(
    r"(fuse\.)?(nfs4?|cifs|smb(\d|fs|netfs)?|9p|afs|afpfs|lustre|ceph(-fuse)?|gpfs|beegfs|glusterfs|ocfs2|gfs2"
    r"|pvfs2|davfs2?|ncpfs|sshfs|s3fs|rclone|gcsfuse|juicefs|goofys|mount-s3)"
)


@register
def check_queue(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    queue: dict[str, Any] = settings.Q_CLUSTER
    timeout, retry = queue.get("timeout") or 0, queue.get("retry") or 0
    longest = settings.RUN_TIME_BUDGET_MAX_SECONDS + settings.RUN_GRACE_SECONDS
    rules = (
        (timeout > longest, "E001", f"Q_CLUSTER['timeout'] must be above the longest run ({longest:.0f} s)."),
        (retry > 3 * timeout, "E002", f"Q_CLUSTER['retry'] must be above three time-outs ({3 * timeout} s)."),
        (queue.get("orm") == "default", "E003", "Q_CLUSTER['orm'] must be 'default'."),
        ("ALT_CLUSTERS" in queue, "E004", "Q_CLUSTER needs the key ALT_CLUSTERS; {} will do."),
        (queue.get("workers") == 1, "E005", "Q_CLUSTER['workers'] must be 1: one run at a time on a device."),
        (queue.get("name") == QUEUE_NAME, "E010", f"Q_CLUSTER['name'] must be '{QUEUE_NAME}' on every host."),
    )
    return [Error(message, id=f"analysis.{number}") for holds, number, message in rules if not holds]


@register
def check_database(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    if database["ENGINE"] != _SQLITE or database.get("OPTIONS", {}).get("transaction_mode") == "IMMEDIATE":
        return []
    hint = "Set OPTIONS['transaction_mode'] = 'IMMEDIATE' and a timeout of 20 s."
    return [Error("SQLite would answer 'database is locked' under load.", hint=hint, id="analysis.E006")]


@register
def check_file_system(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    database = settings.DATABASES["default"]
    if database["ENGINE"] != _SQLITE or not _MOUNTS.exists():
        return []
    path = Path(database["NAME"]).resolve()
    file_system = file_system_of(path, _MOUNTS.read_text(errors="replace"))
    if not _NETWORK_FILE_SYSTEM.fullmatch(file_system):
        return []
    hint = "Set MEMORYMARK_DATA_DIR to a folder on a local disk, or DATABASE_URL to a PostgreSQL."
    return [Error(f"SQLite on {file_system} ({path}) would lose runs.", hint=hint, id="analysis.E007")]


def file_system_of(path: Path, mounts: str) -> str:
    """Return the file system's type in /proc/mounts: of the longest mount point above `path`, the last mounted.

    `nas:/lab /srv nfs4 ...`  and /srv/var/db   ->  nfs4
    `nas:/lab /srv nfs4 ...`  and /srv2/db      ->  what `/` is
    """
    found, depth = "", 0
    for fields in (line.split() for line in mounts.splitlines()):
        if len(fields) >= 3:
            point = Path(_unescaped(fields[1]))
            if path.is_relative_to(point) and len(point.parts) >= depth:
                found, depth = fields[2], len(point.parts)
    return found


def _unescaped(text: str) -> str:
    r"""Undo how the kernel writes a mount point: a blank as \040, and so on."""
    for code in ("040", "011", "012", "134"):
        text = text.replace(f"\\{code}", chr(int(code, 8)))
    return text


@register
def check_lease(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    heartbeat, lease = settings.RUN_HEARTBEAT_SECONDS, settings.RUN_LEASE_SECONDS
    suspect = settings.RUN_SUSPECT_SECONDS
    rules = (
        (lease > 3 * heartbeat, "E008", f"RUN_LEASE_SECONDS must be above three heartbeats ({3 * heartbeat:g} s)."),
        (suspect > 2 * heartbeat, "E009", f"RUN_SUSPECT_SECONDS must be above two heartbeats ({2 * heartbeat:g} s)."),
    )
    return [Error(message, id=f"analysis.{number}") for holds, number, message in rules if not holds]


@register
def check_files(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    readers: tuple[tuple[Callable[[], object], str, str], ...] = (
        (gpus, "E011", "Correct the file, or unset MEMORYMARK_GPUS."),
        (registered_commands, "E012", "Correct the file, or unset MEMORYMARK_COMMANDS."),
        (lambda: secret_names(os.environ), "E013", f"Correct or unset {NAMES_VARIABLE}."),
    )
    found: list[CheckMessage] = []
    for read, number, hint in readers:
        try:
            read()
        except SpecError as error:
            found.append(Error(str(error), hint=hint, id=f"analysis.{number}"))
    return found


@register
def check_secret(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    if settings.DATABASES["default"]["ENGINE"] == _SQLITE or settings.SECRET_KEY_IS_GIVEN:
        return []
    hint = "Set SECRET_KEY to the same value on every host that uses this database."
    message = "This host generated its own SECRET_KEY: workers on other hosts could not read its messages in the queue."
    return [Warning(message, hint=hint, id="analysis.W002")]


@register
def check_exposure(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    if not (settings.SERVES_THIS_MACHINE_ONLY and settings.PRODUCTION):
        return []
    hint = "Unset MEMORYMARK_LOCAL: behind a proxy every request would look like one from this machine."
    return [Warning("POST /analyze is open to this machine without a login.", hint=hint, id="analysis.W001")]


@register
def check_proxies(app_configs: Sequence[AppConfig] | None = None, **kwargs: Any) -> list[CheckMessage]:
    if not settings.PRODUCTION or settings.TRUSTED_PROXIES:
        return []
    hint = "Set MEMORYMARK_TRUSTED_PROXIES to the number of proxies in front of the portal: usually 1."
    message = "All people share the proxy's address: thirty failed logins would lock out the whole lab."
    return [Warning(message, hint=hint, id="analysis.W003")]
