"""A headless Chromium driven through its own debugging pipe: no driver program, no further package.

Used by the browser tests and by docs/screenshots.py. Speaks the DevTools protocol: JSON, ended by NUL.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
TIMEOUT_SECONDS = 30.0


def find_chromium() -> str | None:
    """The first Chromium on the path."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class ChromiumFailed(Exception):
    """Chromium did not answer, or said that it cannot do what was asked."""


def _spawn(arguments: list[str]) -> tuple[int, int, int]:
    """Start Chromium as the head of its own process group; its pid, the pipe to it, the pipe from it.

    It reads commands from file descriptor 3 and answers on 4, so the ends it gets are first moved above those.
    """
    (command_out, command_in), (answer_out, answer_in) = os.pipe(), os.pipe()
    theirs = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (command_out, answer_in)]
    actions = [
        (os.POSIX_SPAWN_DUP2, theirs[0], 3),
        (os.POSIX_SPAWN_DUP2, theirs[1], 4),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    pid = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=actions, setpgroup=0)
    for end in (command_out, answer_in, *theirs):
        os.close(end)
    return pid, command_in, answer_out


class Chromium:
    """One browser with one page. Keeps what the page logged as an error and every address it asked for."""

    def __init__(self, binary: str, profile: Path) -> None:
        self._pid, self._in, self._out = _spawn([binary, *FLAGS, f"--user-data-dir={profile}"])
        self._buffer = b""
        self._number, self._session = 0, ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._open_page()

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._in)
        os.close(self._out)

    def forget(self) -> None:
        """Begin anew with an empty record and no cookies."""
        self.errors, self.requests = [], []
        self.call("Network.clearBrowserCookies")

    def set_cookie(self, name: str, value: str, address: str) -> None:
        self.call("Network.setCookie", name=name, value=value, url=address)

    def set_width(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )

    def set_media(self, media: str) -> None:
        """ "screen" or "print"."""
        self.call("Emulation.setEmulatedMedia", media=media)

    def open(self, address: str) -> None:
        """Go there and wait until everything is loaded."""
        self.call("Page.navigate", url=address)
        self.wait_until(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(address)})")

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def wait_until(self, expression: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Ask the page until it says yes."""
        end = time.monotonic() + timeout_seconds
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise ChromiumFailed(f"not true after {timeout_seconds:.0f} s: {expression}")
            select.select([self._out], [], [], 0.05)

    def screenshot(self, path: Path) -> None:
        """The whole page, however long."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(answer["data"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; what the page reports meanwhile is noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                break
            self._note(answer)
        if "error" in answer:
            raise ChromiumFailed(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def _open_page(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._out], [], [], TIMEOUT_SECONDS)[0]:
                raise ChromiumFailed("no answer")
            chunk = os.read(self._out, 1 << 16)
            if not chunk:
                raise ChromiumFailed("Chromium ended")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"].get("exception", params)))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled" if params["type"] == "error":
                self.errors.append(str([argument.get("value") for argument in params["args"]]))
