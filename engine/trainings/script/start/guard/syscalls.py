"""Has this process asked before each system call of a command that changes a file, of all programs it starts.

A seccomp filter with user notification (Linux 5.5): the kernel holds the call until it is answered. No privilege is
needed, and containers allow it. What writes through a descriptor was opened for writing before, and is not asked for.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

_X86 = """open 2 openat 257 openat2 437 creat 85 truncate 76 unlink 87 unlinkat 263 rmdir 84 rename 82 renameat 264
renameat2 316 link 86 linkat 265 symlink 88 symlinkat 266 mkdir 83 mkdirat 258 mknod 133 mknodat 259 chmod 90 fchmod 91
fchmodat 268 fchmodat2 452 chown 92 fchown 93 lchown 94 fchownat 260 utime 132 utimes 235 futimesat 261 utimensat 280
setxattr 188 lsetxattr 189 fsetxattr 190 removexattr 197 lremovexattr 198 fremovexattr 199 seccomp 317
io_uring_setup 425"""
_ARM = """openat 56 openat2 437 truncate 45 unlinkat 35 renameat 38 renameat2 276 linkat 37 symlinkat 36 mkdirat 34
mknodat 33 fchmod 52 fchmodat 53 fchmodat2 452 fchown 55 fchownat 54 utimensat 88 setxattr 5 lsetxattr 6 fsetxattr 7
removexattr 14 lremovexattr 15 fremovexattr 16 seccomp 277 io_uring_setup 425"""
MACHINES = {"x86_64": (0xC000003E, _X86), "aarch64": (0xC00000B7, _ARM)}
"""AUDIT_ARCH of each machine and the numbers of its calls, of Linux' tables (asm/unistd.h)."""
AT = -1
"""Stands for a call whose folder is the current one."""
# which arguments hold the folder and the path of what changes; two pairs where a path moves to another
PATHS: dict[str, tuple[tuple[int, int], ...]] = {
    **dict.fromkeys(("open", "creat", "truncate", "unlink", "rmdir", "mkdir", "mknod", "chmod"), ((AT, 0),)),
    **dict.fromkeys(("chown", "lchown", "utime", "utimes", "setxattr", "lsetxattr"), ((AT, 0),)),
    **dict.fromkeys(("removexattr", "lremovexattr"), ((AT, 0),)),
    **dict.fromkeys(("openat", "openat2", "unlinkat", "mkdirat", "mknodat", "fchmodat"), ((0, 1),)),
    **dict.fromkeys(("fchmodat2", "fchownat", "futimesat", "utimensat"), ((0, 1),)),
    **dict.fromkeys(("rename", "link"), ((AT, 0), (AT, 1))),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), ((0, 1), (2, 3))),
    "symlink": ((AT, 1),),
    "symlinkat": ((1, 2),),
    **dict.fromkeys(("fchmod", "fchown", "fsetxattr", "fremovexattr"), ((0, AT),)),
}
FLAGS = {"open": 1, "openat": 2, "unlinkat": 2, "renameat2": 4}
CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
AT_REMOVEDIR = 0x200
AT_FDCWD, PATH_MOST = -100, 4096
PR_SET_NO_NEW_PRIVS, SET_MODE_FILTER, NEW_LISTENER, WAIT_KILLABLE = 38, 1, 8, 32
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_REQUEST, _ANSWER, _CONTINUE = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI"), 1
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06


class CannotFilter(OSError):
    """This kernel or container allows no such filter."""


@dataclass(frozen=True)
class Call:
    """A system call that waits for its answer."""

    number: int
    name: str
    paths: tuple[str, ...]
    """Absolute, with the links of their folders resolved."""
    flags: int


def listen() -> int:
    """Filter the calls of this process and of its children; the descriptor that they are read from."""
    libc = ctypes.CDLL(None, use_errno=True)
    program = _program(*_machine())
    instructions = ctypes.create_string_buffer(b"".join(program))
    filtered = struct.pack("HxxxxxxP", len(program), ctypes.addressof(instructions))
    number = _machine()[1]["seccomp"]
    for prepare, flags in ((0, NEW_LISTENER | WAIT_KILLABLE), (1, NEW_LISTENER | WAIT_KILLABLE), (1, NEW_LISTENER)):
        if prepare:
            libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if (descriptor := libc.syscall(number, SET_MODE_FILTER, flags, filtered)) >= 0:
            return int(descriptor)
    raise CannotFilter(ctypes.get_errno(), f"no filter of system calls: {os.strerror(ctypes.get_errno())}")


def receive(listener: int) -> Call | None:
    """Return the call that waits; None where its process has ended meanwhile."""
    request = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, request)
    except OSError:
        return None
    number, pid, _, call, _, _, *arguments = _REQUEST.unpack(bytes(request))
    name = _names()[call]
    try:
        paths = tuple(_path(pid, arguments, *pair) for pair in PATHS[name])
        flags = _open_how(pid, arguments[2]) if name == "openat2" else arguments[FLAGS[name]] if name in FLAGS else 0
        return Call(number, name, paths, flags)
    except (OSError, ValueError):  # the process has ended, or gave an invalid address
        answer(listener, Call(number, name, (), 0))
        return None


def answer(listener: int, call: Call, error: int = 0) -> None:
    flags = 0 if error else _CONTINUE
    with suppress(OSError):  # its process has ended
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(call.number, 0, -error, flags))


@cache
def _machine() -> tuple[int, dict[str, int]]:
    if platform.machine() not in MACHINES:
        raise CannotFilter(errno.ENOSYS, f"the system calls of {platform.machine()} are not known")
    architecture, table = MACHINES[platform.machine()]
    words = table.split()
    return architecture, dict(zip(words[::2], map(int, words[1::2]), strict=True))


@cache
def _names() -> dict[int, str]:
    return {number: name for name, number in _machine()[1].items()}


def _program(architecture: int, numbers: dict[str, int]) -> list[bytes]:
    """Return the filter, in the kernel's instructions: (operation, jump if true, jump if false, operand)."""

    def instruction(operation: int, operand: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", operation, yes, no, operand)

    program = [
        instruction(_LOAD, 4),
        instruction(_EQUAL, architecture, 1),
        instruction(_RETURN, _ERRNO | errno.ENOSYS),
        instruction(_LOAD, 0),
    ]
    for name, number in numbers.items():
        if name == "seccomp":
            continue
        if name in ("open", "openat"):  # only where its flags change something; the number is loaded again behind it
            program += [
                instruction(_EQUAL, number, 0, 4),
                instruction(_LOAD, 16 + 8 * FLAGS[name]),
                instruction(_ANY_BIT, CHANGES, 0, 1),
                instruction(_RETURN, _NOTIFY),
                instruction(_RETURN, _ALLOW),
            ]
            continue
        outcome = _ERRNO | errno.ENOSYS if name == "io_uring_setup" else _NOTIFY
        program += [instruction(_EQUAL, number, 0, 1), instruction(_RETURN, outcome)]
    return [*program, instruction(_RETURN, _ALLOW)]


def _path(pid: int, arguments: list[int], folder: int, path: int) -> str:
    """Return the path that a call names: `folder` and `path` are the numbers of its arguments."""
    text = _text(pid, arguments[path]) if path != AT and arguments[path] else ""
    descriptor = ctypes.c_int32(arguments[folder] & 0xFFFFFFFF).value if folder != AT else AT_FDCWD
    where = f"/proc/{pid}/cwd" if descriptor == AT_FDCWD else f"/proc/{pid}/fd/{descriptor}"
    if not text:  # the call is of a descriptor itself
        return os.readlink(where)
    whole = text if text.startswith("/") else os.path.join(os.readlink(where), text)
    if whole.startswith("/proc/self"):
        whole = f"/proc/{pid}{whole[len('/proc/self') :]}"
    parent, name = os.path.split(whole.rstrip("/") or "/")
    return os.path.normpath(os.path.join(os.path.realpath(parent), name))


def _text(pid: int, address: int) -> str:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        first = 4096 - address % 4096  # the next page may not be there
        content = memory.read(first)
        if b"\0" not in content:
            content += memory.read(PATH_MOST)
    return os.fsdecode(content.partition(b"\0")[0])


def _open_how(pid: int, address: int) -> int:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return int.from_bytes(memory.read(8), "little")
