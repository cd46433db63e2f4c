"""Renew the README's pictures and captions from real runs: one command that starts a portal, measures, and looks.

    python -m docs.screenshots                          about 10 minutes on two quiet cores
    python -m docs.screenshots --every screenshots      also every page, at 1280 and 390 px, into that folder
    python -m docs.screenshots --portal http://127.0.0.1:5001 --password ...     of the newest runs there; starts none

The pictures show what these runs measured, and the captions quote the pages. So run it on a machine that does nothing
else: a disturbed comparison says so in the picture. Needs what the browser tests need: playwright and Chromium.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.browser.chromium import PHONE, WIDE, Visitor, find_chromium, launched

ROOT = Path(__file__).resolve().parents[1]
IMAGES, README = ROOT / "docs" / "images", ROOT / "README.md"
SCRIPT = ROOT / "tests" / "engine" / "trainings" / "script" / "scripts" / "ten_lines.py"
USER, HEIGHT, MAX_BYTES = "admin", 900, 300_000
HEIGHTS = {"result": 1150, "compare": 1100, "matrix": 1000}
PAGES = ("/", "/runs/", "/commands/", "/estimates/", "/what-to-change/", "/matrix/", "/fleet/", "/trend/", "/help/")
SMALL = {"device": "cpu", "memory_limit_bytes": "256MiB", "current_batch_size": 16}
MODEL = "bert-tiny"
ESTIMATED = ("bert", "gpt2", "resnet", "vit_b_16", "llama-3.2-1b")
READY_SECONDS, RUN_SECONDS = 180, 1800


@dataclass(frozen=True)
class Portal:
    """A served portal and the password of its administrator."""

    address: str
    password: str

    def get(self, path: str, **parameters: Any) -> Any:
        return self._answer("GET", path, params=parameters)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._answer("POST", path, json=body)

    def _answer(self, method: str, path: str, **arguments: Any) -> Any:
        address = f"{self.address}/api/v1/{path}"
        answer = httpx.request(method, address, auth=(USER, self.password), timeout=60, **arguments)
        return answer.raise_for_status().json()


@dataclass(frozen=True)
class Pictured:
    """The runs that the pictures show: one of an own script, two of a model."""

    script: int
    compared: tuple[int, int]


def main() -> int:
    """Take the pictures; exit status 1 when a page logged an error, 2 when there is no Chromium."""
    arguments = _arguments()
    binary = find_chromium()
    if binary is None:
        sys.stderr.write("No Chromium on the path.\n")
        return 2
    if arguments.portal:
        return _pictures(Portal(arguments.portal.rstrip("/"), arguments.password), binary, arguments.every)
    with tempfile.TemporaryDirectory(prefix="memorymark-pictures-") as folder, served(Path(folder)) as portal:
        _measure(portal)
        return _pictures(portal, binary, arguments.every)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="also every page at both widths")
    parser.add_argument("--portal", metavar="ADDRESS", help="take the newest runs of this portal, and start none")
    parser.add_argument("--password", default="", help=f"of its {USER}")
    return parser.parse_args()


@contextmanager
def served(folder: Path) -> Iterator[Portal]:
    """A portal of its own: data, lock folder and the script that it may start lie in `folder`."""
    commands = folder / "commands.toml"
    (folder / "train.py").write_text(SCRIPT.read_text())
    commands.write_text(
        f'[[command]]\nname = "train"\ndescription = "A training in ten lines."\ndirectory = "{folder}"\n'
        f'command = ["{sys.executable}", "train.py", "{{batch_size}}"]\n'
        'settings = ["memory_limit_bytes", "current_batch_size", "whole_run"]\n'
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    portal = Portal(f"http://127.0.0.1:{port}", secrets.token_urlsafe(24))
    data = {"MEMORYMARK_DATA_DIR": str(folder / "data"), "MEMORYMARK_LOCK_DIR": str(folder / "locks")}
    names = {"MEMORYMARK_COMMANDS": str(commands), "MEMORYMARK_ADMIN_PASSWORD": portal.password}
    command = [sys.executable, "manage.py", "up", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **data, **names}) as process:
        try:
            _wait_until_ready(portal, process)
            yield portal
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _wait_until_ready(portal: Portal, process: subprocess.Popen[bytes]) -> None:
    ends_at = time.monotonic() + READY_SECONDS
    while time.monotonic() < ends_at and process.poll() is None:
        try:
            if httpx.get(f"{portal.address}/readyz", timeout=10).is_success:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(1)
    raise SystemExit("The portal did not become ready.")


def _measure(portal: Portal) -> None:
    """Start the runs that the pictures show, one after the other, and the estimates of the matrix."""
    measured = [
        portal.post("commands/train/runs/", SMALL),
        portal.post("runs/", {"model": MODEL, **SMALL}),
        portal.post("runs/", {"model": MODEL, **SMALL, "optimizer": "sgd"}),
    ]
    wait_for(portal, measured)
    # an estimate is a minute of CPU: beside a run on the CPU it would disturb the timing
    wait_for(portal, [portal.post("estimates/", {"model": model, "gpu": "all"}) for model in ESTIMATED])


def wait_for(portal: Portal, runs: list[Any]) -> None:
    """Wait until each run has ended, and say how."""
    for run in runs:
        ends_at = time.monotonic() + RUN_SECONDS
        while not (now := portal.get(f"runs/{run['id']}/"))["finished_at"]:
            if time.monotonic() > ends_at:
                raise SystemExit(f"Run {run['id']} is still {now['state']} after {RUN_SECONDS} s.")
            time.sleep(2)
        print(f"run {run['id']}: {now['state']} {now['error_message']}")


def _newest(portal: Portal) -> Pictured:
    """Choose what to show: the newest finished run of a script, and the newest two of the model."""
    finished = portal.get("runs/", state="finished", limit=100)["results"]
    measured = [run for run in finished if run["kind"] == "measurement"]
    scripts = [run["id"] for run in measured if not run["precision"]]  # nothing is known of a script's settings
    models = [run["id"] for run in measured if run["model"] == MODEL]
    if not scripts or len(models) < 2:
        raise SystemExit(f"The pictures need a finished run of a script and two of {MODEL}.")
    return Pictured(scripts[0], (models[1], models[0]))


def _pictures(portal: Portal, binary: str, every: Path | None) -> int:
    shown = _newest(portal)
    with launched(binary) as browser:
        context = browser.new_context(viewport={"width": WIDE, "height": HEIGHT}, color_scheme="dark")
        visitor = Visitor(context.new_page(), portal.address)
        visitor.log_in(USER, portal.password)
        _for_readme(visitor, shown)
        if every:
            _every_page(visitor, shown, every)
        sys.stderr.writelines(f"{error}\n" for error in visitor.errors)
        return 1 if visitor.errors else 0


def _for_readme(visitor: Visitor, shown: Pictured) -> None:
    """Take the top of three pages, and write their headings into the README as captions."""
    IMAGES.mkdir(exist_ok=True)
    first, second = shown.compared
    pages = {
        "result": (f"/runs/{shown.script}/", "The result of a script's run, limited to 256 MiB of a CPU"),
        "compare": (f"/compare/?ids={first}&ids={second}", f"Two runs of {MODEL} on a CPU, AdamW and SGD"),
        "matrix": ("/matrix/", "Estimates for five models on every GPU of the catalogue"),
    }
    text = README.read_text(encoding="utf-8")
    for name, (path, what) in pages.items():
        visitor.resize(WIDE, HEIGHTS[name])
        _open(visitor, path)
        picture = IMAGES / f"{name}.png"
        visitor.page.screenshot(path=picture)
        if picture.stat().st_size > MAX_BYTES:
            raise SystemExit(f"{picture} is larger than {MAX_BYTES} bytes")
        said = " ".join(visitor.page.get_by_role("heading", level=1).inner_text().split())
        text = with_caption(text, name, f"{what}: {said}")
    README.write_text(text, encoding="utf-8")


def with_caption(readme: str, name: str, caption: str) -> str:
    """Return the README with this caption below docs/images/`name`.png; raise ValueError unless it shows it once."""
    safe = caption.replace("[", "(").replace("]", ")")
    text, count = re.subn(rf"!\[[^\]]*\]\((docs/images/{name}\.png)\)", lambda found: f"![{safe}]({found[1]})", readme)
    if count != 1:
        raise ValueError(f"README.md shows docs/images/{name}.png {count} times, not once")
    return text


def _every_page(visitor: Visitor, shown: Pictured, folder: Path) -> None:
    """Whole pages, however long."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = "&".join(f"ids={pk}" for pk in shown.compared)
    for path in (*PAGES, f"/runs/{shown.script}/", f"/runs/{shown.compared[0]}/", f"/compare/?{ids}"):
        name = path.split("?")[0].strip("/").replace("/", "-") or "start"
        for width in (WIDE, PHONE):
            visitor.resize(width, HEIGHT)
            _open(visitor, path)
            visitor.page.screenshot(path=folder / f"{name}-{width}.png", full_page=True)


def _open(visitor: Visitor, path: str) -> None:
    """With everything it loads."""
    visitor.open(path)
    visitor.page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    raise SystemExit(main())
