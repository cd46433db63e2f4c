"""The config file that holds the batch size of a command: read, and copied with another size; never changed itself."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import randbelow
from zlib import crc32

from ....errors import SpecError
from ..config_text import number_in, with_number
from ..spec import FunctionSpec, TuneSpec
from .launch import Place

MOST_BYTES = 4_000_000
OF_HOST = f"memorymark_{crc32(socket.gethostname().encode())}_"
"""What the name of a copy begins with, before the process: hosts may share a folder."""


def number_in_config(spec: TuneSpec) -> int | None:
    """Return the batch size in the config file; None where the batch size is given elsewhere. Raises SpecError."""
    if spec.config is None:
        return None
    file, key = spec.config
    try:
        return number_in(_read(spec, file), Path(file).suffix, key)
    except ValueError as exc:
        raise SpecError("batch_in", f"{file}: {exc}") from exc


@contextmanager
def config_copy(spec: TuneSpec | FunctionSpec, batch_size: int, place: Place) -> Iterator[str | None]:
    """Yield the path of a copy of the config file, if any, with a start's batch size, beside it for relative paths."""
    if not isinstance(spec, TuneSpec) or spec.config is None:
        yield None
        return
    file, key = Path(spec.config[0]), spec.config[1]
    try:
        copied = with_number(_read(spec, str(file)), file.suffix, key, batch_size).encode()
    except ValueError as exc:
        raise SpecError("batch_in", f"{file}: {exc}") from exc
    folder = Path(spec.directory or ".") / file.parent
    _remove_left(folder)
    prefix = f"{OF_HOST}{os.getpid()}_{randbelow(10**9)}_"
    copy = file.with_name(f"{prefix}{file.name}")
    try:
        try:
            (folder / copy.name).write_bytes(copied)
        except OSError as exc:
            copy = place.out / file.name
            copy.write_bytes(copied)
            said = f"MemoryMark: no copy can be written beside {file} ({exc.strerror}): what it names is not found\n"
            place.log.write_text(said)
        yield str(copy)
    finally:
        _remove(folder, prefix)


def _remove_left(folder: Path) -> None:
    for left in folder.glob(f"{OF_HOST}*"):
        found = re.match(r"\d{1,9}_", left.name.removeprefix(OF_HOST))
        if found and _has_ended(int(found[0][:-1])):
            _remove(folder, f"{OF_HOST}{found[0]}")


def _remove(folder: Path, prefix: str) -> None:
    for each in (*folder.glob(f"{prefix}*"), *folder.glob(f"__pycache__/{prefix}*")):
        with suppress(OSError):  # another run removes it, too
            each.unlink()


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as exc:
        return exc.errno == errno.ESRCH
    return False


def _read(spec: TuneSpec, file: str) -> str:
    try:
        with (Path(spec.directory or ".") / file).open("rb") as opened:
            read = opened.read(MOST_BYTES + 1)
    except OSError as exc:
        raise SpecError("batch_in", f"{file}: cannot be read: {exc.strerror}") from exc
    if len(read) > MOST_BYTES:
        raise ValueError(f"has more than {MOST_BYTES // 1_000_000} MB, the most that a config may have")
    return read.decode("utf-8-sig")
