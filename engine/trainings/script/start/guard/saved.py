"""Saves each file before a start changes it, and puts all back after the start, also after a crash.

A file that is to be changed is moved aside and a copy of it takes its place, so the file itself, with its times and
links, is never written to. What is saved of a file system lies in a folder there, where a move costs nothing. The
journal is written before each change, and its entries are undone from the last to the first.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MOST_COPIED_BYTES = 1 << 30
LEAST_FREE_FRACTION = 0.1
"""A copy may be so large, and must leave so much of its disk free."""
LOCK_SECONDS = 10.0  # longer than a start that is being undone
PREFIX, SUFFIX = ".memorymark-saved-", ".journal"
UNDONE = "undone"
"""A note that another is undone, whose line its `facts` hold: an undo that is killed is gone on with from there."""


class CannotSave(Exception):
    """A file could not be put back after this change; the text names the file and says why."""


class Journal:
    """What a start changed, below `folder`, where journals of all starts of an account lie."""

    def __init__(self, folder: Path, shared: tuple[str, ...]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock_of(folder, os.getcwd())
        self.path = folder / f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)  # an open journal is not undone by another process
        self._shared = shared
        self._own: set[str] = set()
        self._moved_in: set[str] = set()
        self._known: set[str] = set()
        self._stores: dict[int, str] = {}
        self._count = 0

    def is_shared(self, path: str) -> bool:
        return any(path == each or path.startswith(each.rstrip("/") + "/") for each in self._shared)

    def before_write(self, path: str, *, is_emptied: bool = False) -> None:
        """Save what is about to be written to, or note what is about to be made. Raises CannotSave."""
        path = os.path.realpath(path)
        status = _status(path)
        if self.is_shared(path) or self._is_own(path) or (status and not stat.S_ISREG(status.st_mode)):
            return
        if status is None:
            self.before_making(path)
            return
        self._know_folder(path)
        saved = self._place(path)
        bytes_copied = 0 if is_emptied else status.st_size
        free = shutil.disk_usage(os.path.dirname(saved)).free
        if bytes_copied > min(MOST_COPIED_BYTES, free * (1 - LEAST_FREE_FRACTION)):
            raise CannotSave(f"{path} has {bytes_copied:,} bytes: too many to copy before the training changes it")
        self._note("saved", path, saved, _facts(status))
        copy = f"{saved}.copy"
        try:
            _copy(path, copy, bytes_copied, status)
            os.link(path, saved, follow_symlinks=False)
            os.rename(copy, path)
        except OSError:  # no links here, or the folder is not ours: the content is written back later
            with suppress(OSError):
                os.unlink(saved)
            _copy(path, copy, status.st_size, status)
            os.rename(copy, saved)  # a copy that was cut short is never put back
        self._own.add(path)

    def before_making(self, path: str) -> None:
        if self.is_shared(path) or self._is_own(path) or _status(path) is not None:
            return
        self._know_folder(path)
        self._note("made", path)
        self._own.add(path)

    def before_removing(self, path: str) -> None:
        """Save a file or an empty folder that is about to be removed. Raises CannotSave."""
        status = _status(path)
        if status is None or self.is_shared(path):
            return
        if self._is_own(path):
            self._own.discard(path)
            return
        self._know_folder(path)
        if stat.S_ISDIR(status.st_mode):
            self._note("folder", path, "", _facts(status))
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            saved = self._place(path)
            self._note("saved", path, saved, _facts(status))
            self._keep(path, saved, status)

    def before_moving(self, path: str, to: str) -> None:
        """Save what a move would replace, and note the move. Raises CannotSave."""
        status = _status(path)
        if status is None or (self.is_shared(path) and self.is_shared(to)):
            return
        self.before_removing(to)
        for each in (path, to):
            self._know_folder(each)
        self._note("moved", path, to, _facts(status))
        (self._own if self._is_own(path) else self._moved_in).add(to)
        self._own.discard(path)

    def before_marking(self, path: str) -> None:
        """Note the mode, owner and times of a path that are about to be changed."""
        status = _status(path)
        if status is None or self.is_shared(path) or self._is_own(path) or not _is_of_this_user(status):
            return
        self._note("marked", path, "", _facts(status))

    def made(self) -> Iterator[tuple[str, str, Path | None]]:
        """Yield what the start did, as `layers.written` does."""
        entries = _entries(self.path)
        saved = [each.path for each in entries if each.what == "saved"]
        for path in dict.fromkeys(each.path for each in entries if each.what in ("saved", "made")):
            if os.path.isfile(path):
                yield "overwritten" if path in saved else "new", path, Path(path)
            elif path in saved:
                yield "removed", path, None

    def undo(self) -> list[str]:
        """Put all back and end the journal; what could not be put back, in words."""
        left = undo(self.path)
        os.close(self._file)
        os.close(self._lock)
        return left

    def _is_own(self, path: str) -> bool:
        while path != "/":
            if path in self._moved_in:
                return False
            if path in self._own:
                return True
            path = os.path.dirname(path)
        return False

    def _know_folder(self, path: str) -> None:
        folder = os.path.dirname(path)
        status = _status(folder)
        is_known = folder in self._known or self._is_own(folder)
        if status is not None and not is_known and _is_of_this_user(status):
            self._known.add(folder)
            self._note("marked", folder, "", _facts(status))

    def _keep(self, path: str, saved: str, status: os.stat_result) -> None:
        try:
            os.link(path, saved, follow_symlinks=False)
        except OSError as error:
            if status.st_size > MOST_COPIED_BYTES:
                raise CannotSave(f"{path} cannot be saved before the training removes it: {error.strerror}") from error
            shutil.copy2(path, f"{saved}.copy", follow_symlinks=False)
            os.rename(f"{saved}.copy", saved)

    def _place(self, path: str) -> str:
        """Return a free path for a saved file on the same file system, as high there as folders are this user's."""
        folder = os.path.dirname(path)
        device = os.stat(folder).st_dev
        if device not in self._stores:
            above = [folder, *map(str, Path(folder).parents)]
            own = [each for each in above if _is_of_this_user(os.stat(each)) and os.stat(each).st_dev == device]
            store = os.path.join(own[-1] if own else str(self.path.parent), f"{PREFIX}{self.path.stem}")
            self._know_folder(store)
            self._note("store", store)
            os.makedirs(store, mode=0o700, exist_ok=True)
            self._stores[device] = store
            self._shared = (*self._shared, store)
        self._count += 1
        return os.path.join(self._stores[device], str(self._count))

    def _note(self, what: str, path: str, other: str = "", facts: tuple[int, ...] = ()) -> None:
        os.write(self._file, json.dumps([what, path, other, facts]).encode() + b"\n")
        os.fdatasync(self._file)


def _lock_of(folder: Path, here: str) -> int:
    """Lock a folder of trainings: of two starts that save the same file, the later would put back the other's copy."""
    name = f"{socket.gethostname()}-{hashlib.sha256(os.fsencode(os.path.realpath(here))).hexdigest()[:16]}.lock"
    lock, until = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600), time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(lock)
                raise CannotSave(f"another run saves files in {here} at the same time") from None
            time.sleep(0.1)


def recover(folder: Path) -> list[str]:
    """Undo what starts left whose process was killed; what could not be put back, in words."""
    left = []
    for path in folder.glob(f"{socket.gethostname()}-*{SUFFIX}"):  # a home may be that of many hosts
        with suppress(FileNotFoundError), path.open() as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            left += undo(path)
    return left


def undo(journal: Path) -> list[str]:
    ways: dict[str, Callable[[str, str, list[int]], None]] = {
        "saved": _put_back,
        "made": lambda path, _, __: _remove(path),
        "folder": _make_folder,
        "moved": lambda path, to, facts: _move_back(path, to, facts[0], is_made_again=(to, facts[0]) in restored),
        "marked": lambda path, _, facts: _mark(path, facts),
        "store": lambda path, _, __: None,
    }
    entries, left = _entries(journal), list[str]()
    undone = {line for each in entries if each.what == UNDONE for line in (each.line, *each.facts)}
    # what stands where it was noted, also where it was made again and has another inode
    restored = {(each.path, each.facts[0]) for each in entries if each.line in undone and each.facts}
    with journal.open("a") as notes:
        for each in reversed([each for each in entries if each.line not in undone]):
            if left and each.what == "made":
                continue  # the folder may hold what could not be moved back
            try:
                ways[each.what](each.path, each.other, each.facts)
            except OSError as error:
                kept = f"; what it held is in {each.other}" if each.what == "saved" else ""
                left.append(f"{each.path}: {error.strerror}{kept}")
            else:  # behind a line of its own: the last line may have been cut short
                restored |= {(each.path, inode) for inode in each.facts[:1]}
                print("\n" + json.dumps([UNDONE, "", "", [each.line]]), file=notes, flush=True)
    if not left:
        for each in entries:
            if each.what == "store":
                shutil.rmtree(each.path, ignore_errors=True)
        for each in reversed(entries):
            if each.what == "marked":
                with suppress(OSError):
                    _mark(each.path, each.facts)
        journal.unlink(missing_ok=True)
    return left


class Entry(NamedTuple):
    """A note of a journal."""

    line: int
    what: str
    path: str
    other: str
    facts: list[int]


def _entries(journal: Path) -> list[Entry]:
    found = []
    for number, line in enumerate(journal.read_text().splitlines()):
        with suppress(ValueError):  # the last line, where the machine failed while it was written
            found.append(Entry(number, *json.loads(line)))
    return found


def _put_back(path: str, saved: str, facts: list[int]) -> None:
    if not os.path.lexists(saved):  # the machine failed before it was saved and changed, or as it was put back
        _mark(path, facts)
        return
    there = _status(path)
    if _status(saved).st_ino != facts[0] and there is not None and there.st_ino == facts[0]:  # type: ignore[union-attr]
        shutil.copyfile(saved, path)  # only its content could be saved
    else:
        _remove(path, keep=facts[0])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            os.rename(saved, path)
        except OSError:  # saved on another file system
            shutil.copy2(saved, path, follow_symlinks=False)
    _mark(path, facts)


def _make_folder(path: str, _: str, facts: list[int]) -> None:
    if not os.path.isdir(path) or os.path.islink(path):
        _remove(path)
        os.makedirs(path)
    _mark(path, facts)


def _move_back(path: str, to: str, inode: int, *, is_made_again: bool) -> None:
    there = _status(to)
    if there is not None and (there.st_ino == inode or is_made_again):
        _remove(path)
        os.rename(to, path)


def _remove(path: str, keep: int = -1) -> None:
    status = _status(path)
    if status is None or status.st_ino == keep:
        return
    if stat.S_ISDIR(status.st_mode):
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for name in names:
                with suppress(OSError):
                    os.chmod(os.path.join(folder, name), 0o700, follow_symlinks=False)
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _mark(path: str, facts: list[int]) -> None:
    _, mode, uid, gid, accessed_ns, changed_ns = facts
    status = os.lstat(path)
    if (status.st_uid, status.st_gid) != (uid, gid):
        os.chown(path, uid, gid, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode) and stat.S_IMODE(status.st_mode) != mode:
        os.chmod(path, mode)
    os.utime(path, ns=(accessed_ns, changed_ns), follow_symlinks=False)


def _facts(status: os.stat_result) -> tuple[int, ...]:
    mode = stat.S_IMODE(status.st_mode)
    return (status.st_ino, mode, status.st_uid, status.st_gid, status.st_atime_ns, status.st_mtime_ns)


def _is_of_this_user(status: os.stat_result) -> bool:
    return os.geteuid() in (0, status.st_uid)


def _status(path: str) -> os.stat_result | None:
    with suppress(OSError):
        return os.lstat(path)
    return None


def _copy(path: str, to: str, size: int, status: os.stat_result) -> None:
    """Copy the first `size` bytes of a file, its mode and its extended attributes."""
    with open(path, "rb") as source, open(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as copy:
        while size > 0 and (copied := os.copy_file_range(source.fileno(), copy.fileno(), size)):
            size -= copied
    os.chmod(to, stat.S_IMODE(status.st_mode))
    with suppress(OSError):
        os.chown(to, status.st_uid, status.st_gid)
        os.utime(to, ns=(status.st_atime_ns, status.st_mtime_ns))
