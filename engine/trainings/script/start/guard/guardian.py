"""Starts a command, and kills it with all its child processes when its own standard input ends.

This script is run by its path and imports only the standard library. On Linux it adopts each process below it whose
parent ends, so it finds ranks and loader workers with sessions of their own. Whoever started it holds the other end
of its input: when that process is killed, the input ends.

Its first argument, in JSON, says how the files of the command's user are kept as they are. What the command wrote is
told in a file, and gone when the guardian has ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # `-I` leaves it out
import layers
import saved
import syscalls

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LOOK_SECONDS = 0.02
DEATH_SECONDS = 10.0
LAYERS, SAVING, NOTHING = "layers", "saving", "nothing"
"""How files are kept as they are: by layers over them, by saving each before it changes, not at all."""
MOST_FILES = 1_000
EPERM = 1
WORKS = "works"

Change = tuple[str, str, Path | None]
"""What was done (`new`, `overwritten`, `removed`), the path, and where the content of a written file lies."""


@dataclass
class Keeper:
    """What keeps the files as they are while a command runs; as such none: their user allowed it to change them."""

    refused: str = ""
    """Why the command was ended before a change that could not be undone; empty where it was not."""

    def enter(self) -> None:
        """Prepare the process that becomes the command."""

    def began(self) -> None:
        """Take over what that process prepared."""

    def wait(self, seconds: float) -> bool:
        """Wait for a moment; whether the standard input has ended."""
        return bool(select.select([sys.stdin], [], [], seconds)[0])

    def changes(self) -> Iterable[Change]:
        """Return what the command did."""
        return ()

    def end(self) -> list[str]:
        """Let nothing of it remain; what could not be undone, in words."""
        return []


@dataclass
class Layers(Keeper):
    """Has the command see its files through layers."""

    scratch: Path = field(kw_only=True)
    shared: tuple[str, ...] = field(kw_only=True)

    def enter(self) -> None:
        layers.enter(self.scratch, self.shared)

    def changes(self) -> Iterable[Change]:
        found: Iterable[Change] = layers.written(self.scratch)
        return found

    def end(self) -> list[str]:
        layers.remove(self.scratch)
        return []


@dataclass
class Saving(Keeper):
    """Saves each file before the command changes it, and puts all back."""

    journals: Path = field(kw_only=True)
    shared: tuple[str, ...] = field(kw_only=True)
    listener: int = -1

    def __post_init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.journal = saved.Journal(self.journals, (*self.shared, *layers.DEVICES))

    def enter(self) -> None:
        socket.send_fds(self.theirs, [b"f"], [syscalls.listen()])

    def began(self) -> None:
        _, (self.listener, *_), _, _ = socket.recv_fds(self.ours, 1, 1)

    def wait(self, seconds: float) -> bool:
        ready = select.select([sys.stdin, self.listener], [], [], seconds)[0]
        if self.listener in ready and (call := syscalls.receive(self.listener)) is not None:
            syscalls.answer(self.listener, call, self._prepare(call))
        return sys.stdin in ready or bool(self.refused)

    def _prepare(self, call: syscalls.Call) -> int:
        """Save what a call changes; the error number that it is to fail with, or 0."""
        path, *others = call.paths
        try:
            if call.name in ("open", "openat", "openat2", "creat", "truncate"):
                is_emptied = call.name == "creat" or bool(call.flags & os.O_TRUNC)
                self.journal.before_write(path, is_emptied=is_emptied)
            elif call.name in ("unlink", "rmdir", "unlinkat"):
                self.journal.before_removing(path)
            elif call.name in ("rename", "renameat", "renameat2"):
                self.journal.before_moving(path, others[0])
            elif call.name in ("link", "linkat"):
                self.journal.before_write(path)  # the other name is one of the same file
                self.journal.before_making(others[0])
            elif call.name in ("mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat"):
                self.journal.before_making(path)
            elif "xattr" in call.name and os.path.isfile(path):
                self.journal.before_write(path)
            else:
                self.journal.before_marking(path)
        except (saved.CannotSave, OSError) as error:
            self.refused = str(error)
            return EPERM
        return 0

    def changes(self) -> Iterable[Change]:
        found: Iterable[Change] = self.journal.made()
        return found

    def end(self) -> list[str]:
        left: list[str] = self.journal.undo()
        return left


def keeper_of(settings: dict[str, Any]) -> Keeper:
    shared = tuple(settings["shared"])
    if settings["protection"] == LAYERS:
        return Layers(scratch=Path(settings["scratch"]), shared=shared)
    if settings["protection"] == SAVING:
        return Saving(journals=Path(settings["journals"]), shared=shared)
    return Keeper()


def main(settings: dict[str, Any], command: list[str]) -> int:
    """Run the command; its exit status, negative for a signal. Ends early when the standard input does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        keeper = keeper_of(settings)
    except saved.CannotSave as error:
        _tell(settings, (), str(error), [])
        return 0
    # the command's output goes where this process's errors go; its own output is the answer
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, preexec_fn=_enters(keeper))
    keeper.began()
    while process.poll() is None and not keeper.wait(LOOK_SECONDS):
        pass
    status = process.poll()
    _end_all(process)
    changes = list(keeper.changes())
    if settings["outputs"]:
        out = [("new", str(path), path) for path in Path(settings["out"]).rglob("*") if path.is_file()]
        _keep_outputs([*changes, *out], Path(settings["outputs"]), Path(settings["out"]))
    _tell(settings, changes[:MOST_FILES], keeper.refused, keeper.end())
    print("" if status is None else status, flush=True)  # noqa: T201 - the answer to the one who started it
    return 0


def _tell(settings: dict[str, Any], changes: Iterable[Change], refused: str, left: list[str]) -> None:
    told = {"files": [change[:2] for change in changes], "refused": refused, "left": left}
    Path(settings["changes"]).write_text(json.dumps(told | {"protection": settings["protection"]}))


def try_ways(settings: dict[str, Any]) -> dict[str, str]:
    why = ""
    for way in settings["ways"]:
        reading, writing = os.pipe()
        with tempfile.TemporaryDirectory(prefix="memorymark-trial-") as scratch:
            keeper = keeper_of({"protection": way, "scratch": f"{scratch}/layers", "journals": scratch, "shared": ()})
            if (pid := os.fork()) == 0:
                _tell_whether(keeper, writing)
            os.close(writing)
            with os.fdopen(reading) as told:
                answer = told.read()
            os.waitpid(pid, 0)
            keeper.end()
        if answer == WORKS:
            return {"way": way, "why_no_layers": why}
        why = answer if way == LAYERS else why
    return {"way": NOTHING, "why_no_layers": why}


def _tell_whether(keeper: Keeper, writing: int) -> None:
    try:
        keeper.enter()
        if isinstance(keeper, Layers) and os.access(".", os.W_OK):
            with tempfile.NamedTemporaryFile(dir="."):
                pass
        answer = WORKS
    except OSError as error:
        answer = str(error) or type(error).__name__
    os.write(writing, answer.encode())
    os._exit(0)


def _enters(keeper: Keeper) -> Callable[[], None]:
    def enter() -> None:
        keeper.enter()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    return enter


def _keep_outputs(changes: Iterable[Change], folder: Path, out: Path) -> None:
    for what, path, content in changes:
        if what == "removed" or content is None:
            continue
        within = next((each for each in (out, Path.cwd()) if Path(path).is_relative_to(each)), Path("/"))
        target = folder / Path(path).relative_to(within)
        with suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(content, target, follow_symlinks=False)


def _end_all(process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + DEATH_SECONDS
    while time.monotonic() < until:
        left = _descendants(os.getpid()) or ({process.pid} if process.poll() is None else set())
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(LOOK_SECONDS)


def _descendants(pid: int) -> set[int]:
    found: set[int] = set()
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found |= {child} | _descendants(child)
    return found


if __name__ == "__main__":
    SETTINGS = json.loads(sys.argv[1])
    if "ways" in SETTINGS:
        print(json.dumps(try_ways(SETTINGS)))  # noqa: T201
    else:
        sys.exit(main(SETTINGS, sys.argv[2:]))
