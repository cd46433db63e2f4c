"""Gives a process a file system of its own: what it writes goes to a scratch folder, and no file outside changes.

A mount namespace whose folders are overlays: the lower layer is the real folder, which the kernel never writes to; the
upper one lies in the scratch folder. As root this needs nothing else; other users need a user namespace, in which the
kernel refuses to layer a folder that has mounts below it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
DEVICES = ("/dev", "/proc", "/run", "/sys")
"""Folders of the kernel's own file systems and of sockets: seen as they are, with all that is mounted below them."""
DATA_TYPES = {"9p", "bcachefs", "beegfs", "btrfs", "ceph", "cifs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fuseblk"}
DATA_TYPES |= {"gfs2", "gpfs", "jfs", "lustre", "nfs", "nfs4", "ntfs3", "overlay", "ramfs", "reiserfs", "smb3", "tmpfs"}
DATA_TYPES |= {"vfat", "virtiofs", "wekafs", "xfs", "zfs"}
"""File systems that hold people's files, as those of `fuse.` do; all others are seen as they are."""
MOST_SKELETON_ENTRIES, MOST_LOOKED_AT = 2_000, 10_000
OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class CannotLayer(OSError):
    """This kernel, container or folder allows no layers; the text says why."""


@dataclass(frozen=True)
class Mount:
    """A mount point and the type of its file system."""

    path: str
    kind: str
    is_read_only: bool

    @property
    def holds_data(self) -> bool:
        is_known = self.kind in DATA_TYPES or self.kind.startswith("fuse.")
        return is_known and not self.is_read_only and not is_below(self.path, DEVICES)


@dataclass
class View:
    """The new root of a start, while it is put together below `scratch`."""

    scratch: Path
    mounts: dict[str, Mount]
    has_user_namespace: bool
    layers: list[str] = field(default_factory=list)

    def at(self, path: str) -> str:
        return str(self.scratch / "root") + ("" if path == "/" else path)

    def below(self, folder: str) -> list[str]:
        found = sorted(path for path in self.mounts if path != folder and is_below(path, [folder]))
        return [path for path in found if not any(path != other and is_below(path, [other]) for other in found)]

    def show(self, folder: str) -> None:
        """Put a folder of the real file system into the new root, in a layer if it may hold somebody's files."""
        mount = self.mounts.get(folder)
        if is_below(folder, DEVICES) or (mount is not None and not mount.holds_data):
            _bind(folder, self.at(folder))
            return
        if not os.path.isdir(folder):  # a single file, mounted by a container
            _bind(folder, self.at(folder), read_only=True)
            return
        below = self.below(folder)
        if below and self.has_user_namespace:
            self._show_entries(folder)
            return
        self._layer(folder)
        for path in below:
            self.show(path)

    def _layer(self, folder: str) -> None:
        place = self.scratch / str(len(self.layers))
        (place / "upper").mkdir(parents=True)
        (place / "work").mkdir()
        status = os.stat(folder)
        os.chmod(place / "upper", stat.S_IMODE(status.st_mode))
        with suppress(OSError):  # another user's, who is unknown in a user namespace
            os.chown(place / "upper", status.st_uid, status.st_gid)
        options = {"lowerdir": folder, "upperdir": f"{place}/upper", "workdir": f"{place}/work"}
        text = ",".join(f"{name}={_escaped(path)}" for name, path in options.items())
        moves = "userxattr" if self.has_user_namespace else "redirect_dir=on"  # else a folder could not be moved
        _mount("overlay", self.at(folder), "overlay", 0, f"{text},{moves}")
        (place / "of").write_text(folder)
        self.layers.append(folder)

    def _show_entries(self, folder: str) -> None:
        """Make a folder anew whose entries are layers, for mounts below it; one its user may write in is refused."""
        if os.access(folder, os.W_OK):
            raise CannotLayer(f"{folder} has other file systems mounted below it")
        entries = list(os.scandir(folder))
        if len(entries) > MOST_SKELETON_ENTRIES:
            raise CannotLayer(f"{folder} has mounts below it, and {len(entries):,} entries")
        if folder == "/" or not is_below(folder, ["/"]):
            _mount("tmpfs", self.at(folder), "tmpfs", 0, "mode=755")
        for entry in entries:
            target = self.at(entry.path)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            elif entry.is_dir(follow_symlinks=False):
                os.mkdir(target)
                if os.access(entry.path, os.R_OK | os.X_OK):
                    self.show(entry.path)
                else:
                    os.chmod(target, 0)
            elif entry.is_file(follow_symlinks=False):
                Path(target).touch()
                _bind(entry.path, target, read_only=True)


def enter(scratch: Path, shared: Iterable[str]) -> None:
    """Move this process, which has one thread, into a file system whose changes stay in `scratch`.

    The folders and sockets of `shared` are seen as they are. Raises CannotLayer, after which the process must end.
    """
    here = os.getcwd()
    uid, gid = os.geteuid(), os.getegid()
    has_user_namespace = _libc().unshare(CLONE_NEWNS) != 0
    if has_user_namespace:
        if _libc().unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0:
            raise CannotLayer(f"namespaces are not allowed here: {os.strerror(ctypes.get_errno())}")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        _check_owners(here, uid, gid)
    try:
        _mount("none", "/", None, MS_REC | MS_PRIVATE)
        (scratch / "root").mkdir(parents=True)
        view = View(scratch, mounts(), has_user_namespace)
        view.show("/")
        for path in sorted({*shared, *_sockets(view)}):
            if os.path.exists(path) and os.path.exists(view.at(path)):
                _bind(path, view.at(path))
        _move_into(view.at("/"))
        os.chdir(here)
    except OSError as error:
        raise CannotLayer(f"layers are not possible here: {error}") from error


def _check_owners(folder: str, uid: int, gid: int) -> None:
    """Raise CannotLayer where a file belongs to somebody whom a user namespace does not know."""
    parents = [str(each) for each in (Path(folder), *Path(folder).parents)][:-1]
    within = (os.path.join(where, name) for where, folders, files in os.walk(folder) for name in [*folders, *files])
    for path in [*parents[:-1], *islice(within, MOST_LOOKED_AT)]:
        with suppress(OSError):
            status = os.lstat(path)
            is_known = status.st_uid == uid and status.st_gid == gid
            if not is_known and (path in parents or os.access(path, os.W_OK, follow_symlinks=False)):
                raise CannotLayer(f"{path} belongs to another user or group")


def mounts() -> dict[str, Mount]:
    found = {}
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        path = left.split()[4].encode(errors="surrogateescape").decode("unicode_escape").encode("latin-1")
        name = os.fsdecode(path)
        found[name] = Mount(name, right.split()[0], "ro" in left.split()[5].split(","))
    return {path: mount for path, mount in found.items() if os.path.exists(path)}


def is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def written(scratch: Path) -> Iterator[tuple[str, str, Path | None]]:
    """Yield what a start did (`new`, `overwritten` or `removed`), the path that it saw, and where the content lies."""
    for layer in sorted(scratch.glob("[0-9]*")):
        with suppress(OSError):
            yield from _written_in(layer / "upper", (layer / "of").read_text())


def remove(scratch: Path) -> None:
    for folder, names, _ in os.walk(scratch):
        for name in names:
            with suppress(OSError):
                os.chmod(os.path.join(folder, name), 0o700, follow_symlinks=False)
    shutil.rmtree(scratch, ignore_errors=True)


def _written_in(upper: Path, lower: str) -> Iterator[tuple[str, str, Path | None]]:
    for folder, names, files in os.walk(upper):
        seen = Path(lower, os.path.relpath(folder, upper))
        if any(_attribute(folder, name) == b"y" for name in OPAQUE):  # removed and made anew
            for gone, _, old in os.walk(seen):
                here = Path(folder, os.path.relpath(gone, seen))
                yield from (("removed", os.path.join(gone, name), None) for name in old if not (here / name).exists())
        for name in [*files, *(each for each in names if os.path.islink(os.path.join(folder, each)))]:
            path, real = os.path.normpath(seen / name), Path(folder, name)
            status = real.lstat()
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                yield from (("removed", each, None) for each in _files(path))
            elif status.st_mode & stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFLNK):
                yield "overwritten" if os.path.lexists(path) else "new", path, real


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path) or os.path.islink(path):
        yield path
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names)


def _attribute(path: str, name: str) -> bytes | None:
    with suppress(OSError):
        return os.getxattr(path, name, follow_symlinks=False)
    return None


def _sockets(view: View) -> Iterator[str]:
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(errors="surrogateescape").splitlines()[1:]:
            path = line.split(maxsplit=7)[7] if line.count("/") else ""
            if path.startswith("/") and not is_below(path, DEVICES) and _is_socket(path):
                yield path


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False


def _move_into(root: str) -> None:
    os.chdir(root)
    call = PIVOT_ROOT.get(platform.machine())
    if call is not None and _libc().syscall(call, b".", b".") == 0:
        if _libc().umount2(b".", MNT_DETACH) != 0:
            raise OSError(ctypes.get_errno(), "the old root cannot be left")
    else:  # as where a machine runs from its initial RAM disk
        os.chroot(".")
    os.chdir("/")


def _bind(source: str, target: str, *, read_only: bool = False) -> None:
    _mount(source, target, None, MS_BIND | MS_REC)
    if read_only:
        with suppress(OSError):  # a flag that a container has locked
            _mount("none", target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    encoded = [os.fsencode(each) if each is not None else None for each in (source, target, kind)]
    if _libc().mount(*encoded, ctypes.c_ulong(flags), options.encode(errors="surrogateescape")) != 0:
        raise OSError(ctypes.get_errno(), f"mount: {os.strerror(ctypes.get_errno())}", target)


def _escaped(path: str) -> str:
    return "".join(f"\\{each}" if each in ",:\\" else each for each in path)
