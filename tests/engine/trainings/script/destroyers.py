"""Scripts that overwrite, remove or move what lies in their folder, as people's trainings and their helpers do.

Each is Python that runs in a folder made by `make_folder`, beside which a folder `elsewhere` lies.
"""

import hashlib
import os
import stat
from pathlib import Path

MOST_HASHED_BYTES = 1 << 24
SHELL = "import subprocess\nsubprocess.run({!r}, shell=True)"
QUICK = {
    "opens a checkpoint anew": "open('output/model.pt', 'w').write('new')",
    "removes its output folder first": "import shutil\nshutil.rmtree('output')",
    "appends to a log": "open('log.txt', 'a').write('more')",
    "has the shell remove it": SHELL.format("rm -rf output *.txt"),
}
SLOW = {
    "truncates": "import os\nos.truncate('output/model.pt', 3)",
    "writes in the middle": "f = open('output/model.pt', 'r+b')\nf.seek(5)\nf.write(b'!')",
    "removes a file": "import os\nos.remove('log.txt')",
    "moves one over another": "import os\nos.replace('log.txt', 'output/model.pt')",
    "moves the folder away and makes it anew": (
        "import os\nos.rename('output', 'old')\nos.mkdir('output')\nopen('output/model.pt', 'w').write('new')\n"
        "open('old/model.pt', 'a').write('changed')"
    ),
    "rotates checkpoints": (
        "import os, shutil\nshutil.rmtree('output/checkpoint-1')\n"
        "os.rename('output/checkpoint-2', 'output/checkpoint-1')\n"
        "shutil.copytree('output/checkpoint-1', 'output/checkpoint-2')"
    ),
    "redirects the shell": SHELL.format("echo new > log.txt; echo more >> output/model.pt"),
    "edits in place": SHELL.format("sed -i s/first/second/ log.txt"),
    "copies and moves by programs": SHELL.format("cp log.txt output/model.pt; mv output/best.pt log.txt"),
    "writes raw blocks": SHELL.format("dd if=/dev/zero of=output/model.pt bs=1 count=4 conv=notrunc"),
    "unpacks over it": SHELL.format("tar cf new.tar output; echo x > output/model.pt; tar xf new.tar; rm new.tar"),
    "writes by an absolute path": "import os\nopen(os.path.abspath('log.txt'), 'w').write('new')",
    "writes through a link to a file": "open('latest', 'w').write('new')",
    "writes through a link to a folder elsewhere": "open('data/rows.bin', 'ab').write(b'more')",
    "links a file and writes to the link": "import os\nos.link('log.txt', 'same')\nopen('same', 'a').write('more')",
    "takes rights away": "import os\nos.chmod('log.txt', 0o600)\nos.chmod('output', 0o700)\nos.chmod('run.sh', 0)",
    "changes times": "import os\nos.utime('log.txt', (1, 1))\nos.utime('output', (1, 1))",
    "maps a file": (
        "import mmap\nf = open('output/model.pt', 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nm[:3] = b'new'\nm.flush()"
    ),
    "writes to a database": (
        "import sqlite3\nc = sqlite3.connect('runs.sqlite3')\nc.execute('create table if not exists t (x)')\n"
        "c.execute('insert into t values (1)')\nc.commit()"
    ),
    "replaces a file by another": (
        "import os\nopen('log.tmp', 'w').write('new')\nos.replace('log.tmp', 'log.txt')\nos.symlink('log.txt', 'new')"
    ),
    "replaces a link": "import os\nos.remove('latest')\nopen('latest', 'w').write('new')",
    "replaces a folder by a file": "import os, shutil\nshutil.rmtree('output')\nopen('output', 'w').write('new')",
    "removes all": SHELL.format("rm -rf ./* .hidden"),
    "removes by descriptors of folders": (
        "import os\nd = os.open('output', os.O_RDONLY)\nos.remove('model.pt', dir_fd=d)\n"
        "os.rename('best.pt', 'x', src_dir_fd=d, dst_dir_fd=d)\nos.chmod('x', 0o600, dir_fd=d)"
    ),
    "removes an empty folder": "import os\nos.rmdir('empty')\nos.makedirs('new/deep')",
    "has a loader worker write": (
        "import multiprocessing as m\np = m.Process(target=lambda: open('log.txt', 'w').write('new'))\n"
        "p.start()\np.join()"
    ),
    "leaves a daemon that writes": (
        "import subprocess, time\nsubprocess.Popen('while :; do echo x >> log.txt; sleep 0.01; done', shell=True,"
        " start_new_session=True)\ntime.sleep(0.2)"
    ),
    "starts a program with an empty environment": SHELL.format("env -i /bin/rm -f log.txt"),
    "calls the C library": (
        "import ctypes\nc = ctypes.CDLL(None)\nc.unlink(b'log.txt')\nc.truncate(b'run.sh', ctypes.c_long(0))"
    ),
    "sets an attribute": (
        "import os\nos.setxattr('log.txt', 'user.step', b'1')\nos.chown('log.txt', os.getuid(), os.getgid())"
    ),
    "goes to another folder": (
        "import os\nos.chdir('output')\nopen('model.pt', 'w').write('new')\nos.remove('../log.txt')"
    ),
    "keeps a file open while it is removed": (
        "import os\nf = open('log.txt', 'a')\nos.remove('log.txt')\nf.write('x')\nf.flush()\nopen('log.txt', 'w')"
    ),
}
MOVE_FOLDERS = {"moves the folder away and makes it anew", "rotates checkpoints"}
LIBRARIES = {
    "torch.save": "import torch\ntorch.save({'w': torch.ones(9)}, 'output/model.pt')",
    "safetensors": (
        "import torch\nfrom safetensors.torch import save_file\nsave_file({'w': torch.ones(9)}, 'output/model.pt')"
    ),
    "a memory map of numpy": "import numpy\nnumpy.memmap('output/model.pt', mode='r+', shape=4)[:] = 7",
}


def make_folder(root: Path) -> Path:
    """Make what a finished training leaves, and what its data lies in."""
    folder, elsewhere = root / "project", root / "elsewhere"
    for each in (folder / "output/checkpoint-1", folder / "output/checkpoint-2", folder / "empty", elsewhere):
        each.mkdir(parents=True)
    files = ("output/model.pt", "output/best.pt", "output/checkpoint-1/a", "output/checkpoint-2/a", "log.txt", "run.sh")
    for name in (*files, ".hidden"):
        (folder / name).write_text(f"the first content of {name}\n" * 20)
    (elsewhere / "rows.bin").write_bytes(bytes(range(256)))
    (folder / "latest").symlink_to("output/model.pt")
    (folder / "data").symlink_to(elsewhere)
    (folder / "run.sh").chmod(0o755)
    for number, path in enumerate(sorted(root.rglob("*"), reverse=True)):
        os.utime(path, ns=(10**18 + number, 10**18 + number * 10**9), follow_symlinks=False)
    return folder


def state_of(root: Path) -> dict[str, tuple[object, ...]]:
    """Return the kind, mode, time and content of all below a folder."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            content = os.readlink(path)
        elif status.st_size > MOST_HASHED_BYTES:
            content = str(status.st_size)
        else:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        kept = (stat.filemode(status.st_mode), status.st_mtime_ns, content)
        found[str(path.relative_to(root))] = kept if not path.is_symlink() else (kept[0], content)
    return found
