"""Reads the circumstances of a run's start on this machine. Loads no torch."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from .parse import Facts, cgroup_folders, container_facts, lowest_cpu_quota, lowest_memory_limit, slurm_facts


def run_facts(environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> Facts:
    return {
        "run_key": secrets.token_hex(16),
        "host": socket.gethostname(),
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **place_facts(environ, root),
    }


def place_facts(environ: Mapping[str, str], root: Path) -> Facts:
    cgroup = _read(root / "proc/self/cgroup")
    mountinfo, containerenv = _read(root / "proc/self/mountinfo"), _read(root / "run/.containerenv")
    facts = slurm_facts(environ) | container_facts(environ, cgroup, mountinfo, containerenv)
    groups = root / "sys/fs/cgroup"
    memory = [groups / folder for folder in cgroup_folders(cgroup, "memory")]
    limit_bytes = lowest_memory_limit(
        _read(folder / name) for folder in memory for name in ("memory.max", "memory.limit_in_bytes")
    )
    cpu = [groups / folder for folder in cgroup_folders(cgroup, "cpu")]
    cores = lowest_cpu_quota(  # one file in version 2, two in version 1
        _read(each / "cpu.max") or f"{_read(each / 'cpu.cfs_quota_us')} {_read(each / 'cpu.cfs_period_us')}"
        for each in cpu
    )
    limits = {"cgroup_memory_limit_bytes": limit_bytes, "cgroup_cpu_cores": cores}
    return facts | {name: value for name, value in limits.items() if value is not None}


def commit_of(folder: Path) -> str | None:
    """Return the commit that a folder was checked out at, with "+" when files differ; None outside a checkout."""
    command = ["git", "-C", str(folder), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _read(path: Path) -> str:
    """Return the text of a kernel's file; empty where there is none, as on other systems."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
