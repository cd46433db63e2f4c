"""A database of SQLite to which every migration was applied, made once for all test processes."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".pytest_cache" / "migrated"


def copy_migrated(to: Path) -> None:
    """Copy it there. It is made anew when a migration changes; what else changed, pytest's own `migrate` adds."""
    KEPT.mkdir(parents=True, exist_ok=True)
    sources = sorted((ROOT / "analysis" / "migrations").glob("*.py"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    made = KEPT / f"{digest[:16]}.sqlite3"
    with (KEPT / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not made.exists():
            for earlier in KEPT.glob("*.sqlite3"):
                earlier.unlink()
            with tempfile.TemporaryDirectory(dir=KEPT) as folder:
                file = Path(folder) / "new.sqlite3"
                environment = {**os.environ, "DATABASE_URL": f"sqlite:///{file}"}
                subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
                file.rename(made)
        shutil.copyfile(made, to)
