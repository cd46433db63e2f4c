"""Keeps what traces found, so that the next estimate of the same settings needs no torch.

A trace is what a version of the libraries allocates with a spec's settings. It is read from the account's cache, of
this source and the installed libraries, or from those that are shipped: the catalogue's models at usual settings, made
by `scripts/ship-traces`. Without torch the shipped ones stand for its newest known version.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ...machine.cache_folder import cache_folder, remove_the_oldest
from ...program import version_of
from ...settings.setting import Role
from ...settings.spec import SETTINGS, RunSpec
from ..attention_family import Family
from .packed_trace import StoredTrace, Versions, packed, unpacked

SHIPPED = Path(__file__).parent / "shipped_traces.zip"
TRACED_MICRO_BATCHES = 3
"""The most micro-batches traced per step: only the first one allocates gradients, and all others are alike."""
MOST_FILES, MOST_BYTES = 500, 64 * 2**20
"""What the cache holds at most: the trace that was read longest ago goes first. A trace has 10 to 200 KB."""
_TRACED = ("torch", "transformers", "torchvision")
"""The libraries whose code a trace runs: another version may allocate otherwise."""
_BESIDE = ("peft", "bitsandbytes", "diffusers", "schedulefree")
_OF_TRACES = ("estimate", "measurement", "settings")
"""The packages of the engine that decide what a trace holds."""
_OF_SPEC = [name for name, each in SETTINGS.items() if each.role in (Role.WORKLOAD, Role.TRAINING)]


def versions() -> Versions:
    return {package: version_of(package) for package in _TRACED}


def find(spec: RunSpec, family: Family) -> StoredTrace | None:
    """Return the trace of the installed libraries; of the shipped ones where torch is not installed."""
    name, installed = file_name(spec), versions()
    for read in (_cached, _shipped):
        for trace in unpacked(read(name)):
            is_installed = not installed["torch"] or _are_alike(trace.versions, installed)
            if family in trace.families and is_installed:
                return trace
    return None


def keep(spec: RunSpec, trace: StoredTrace) -> None:
    """Put a trace into the account's cache; nothing is kept where that cannot be written."""
    path = _folder() / file_name(spec)
    others = [each for each in unpacked(_cached(path.name)) if not {*each.families} & {*trace.families}]
    partial = path.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(zlib.compress(packed([*others, trace]), level=3))
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        remove_the_oldest(path.parent.parent.rglob("*.trace"), MOST_FILES, MOST_BYTES)


def file_name(spec: RunSpec) -> str:
    """Return the name of the file with a spec's traces: of the settings that decide what its steps allocate."""
    settings = {name: getattr(spec, name) for name in _OF_SPEC} | {
        "sequence_length": None,
        "image_size": None,
        "input_size": spec.input_size,
        "accumulation_steps": min(spec.accumulation_steps, TRACED_MICRO_BATCHES),
        "pretrained": False,
    }
    content = json.dumps(settings, sort_keys=True).encode()
    return f"{settings['model']}-{hashlib.sha256(content).hexdigest()[:24]}.trace"


def _cached(name: str) -> bytes | None:
    path = _folder() / name
    with suppress(OSError, zlib.error):
        content = zlib.decompress(path.read_bytes())
        os.utime(path)  # read last: it goes last
        return content
    return None


def _shipped(name: str) -> bytes | None:
    with suppress(OSError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(SHIPPED) as archive:
        return archive.read(name)
    return None


def _are_alike(one: Versions, other: Versions) -> bool:
    """Whether versions run the same code: builds of one version do, as 2.13.0+cpu and 2.13.0+cu130."""
    return all(_public(one[name]) == _public(other[name]) for name in _TRACED)


def _public(version: str | None) -> str | None:
    return version and version.partition("+")[0]


@cache
def _folder() -> Path:
    """Return the folder of the traces that this source makes with the installed libraries."""
    engine = Path(__file__).parents[2]
    made_by = hashlib.sha256()
    for path in sorted(path for package in _OF_TRACES for path in (engine / package).rglob("*")):
        if path.suffix in (".py", ".toml"):
            made_by.update(path.read_bytes())
    installed: dict[str, Any] = versions() | {package: version_of(package) for package in _BESIDE}
    made_by.update(json.dumps(installed, sort_keys=True).encode())
    return cache_folder() / "traces" / made_by.hexdigest()[:24]
