"""PURE: whether two hosts were started to measure the same."""

from __future__ import annotations

from hashlib import sha256

from ... import __version__
from ..spec import TuneSpec
from .rendezvous import same_everywhere


def settings_of(spec: TuneSpec) -> dict[str, str]:
    """Return what has to be the same on each host, by its name; as digests, so that no secret of a command is sent."""
    compared: dict[str, object] = {
        "version of MemoryMark": __version__,
        "command": same_everywhere(spec.command),
        "--batch": spec.batch,
        "--batch-in": spec.batch_in,
        "--memory-limit": spec.memory_limit_bytes,
        "--device": spec.device.partition(":")[0],
    }
    return {name: sha256(repr(value).encode()).hexdigest() for name, value in compared.items()}


def first_difference(own: dict[str, str], theirs: object) -> str | None:
    """Return the first setting that differs; None where none does."""
    given = theirs if isinstance(theirs, dict) else {}
    return next((name for name, value in own.items() if given.get(name) != value), None)
