"""The system's Chromium, driven by playwright: for the browser tests and for docs/screenshots.py.

Playwright's own browsers are not downloaded: what is tested is what Debian ships.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
WIDE, PHONE = 1280, 390
AXE_OPTIONS = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
# for an element and for what is expected of it alike; a busy machine needs more than playwright's five seconds to draw
# the API's description, and a wait that ends early costs nothing
WAIT_MILLISECONDS = 60_000


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def launched(binary: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Visitor:
    """One window on one portal. Keeps what was logged as an error, and every address that was asked for."""

    page: Page
    site: str
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(WAIT_MILLISECONDS)
        expect.set_options(timeout=WAIT_MILLISECONDS)
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    @property
    def context(self) -> BrowserContext:
        return self.page.context

    @property
    def foreign_requests(self) -> list[str]:
        return [address for address in self.requests if not address.startswith((self.site, "data:", "blob:"))]

    @property
    def width(self) -> int:
        """What the page takes, in CSS pixels: more than the window means scrolling sideways."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def broken_rules(self) -> list[tuple[str, str]]:
        """List what breaks WCAG 2.1 A and AA, as axe-core finds it, each with the first element that breaks it."""
        found = Axe().run(self.page, options=AXE_OPTIONS).response["violations"]
        return [(rule["id"], f"{len(rule['nodes'])} times: {rule['nodes'][0]['html'][:120]}") for rule in found]

    def open(self, path: str) -> None:
        self.page.goto(self.site + path)

    def resize(self, width: int, height: int = 900) -> None:
        self.page.set_viewport_size({"width": width, "height": height})

    def log_in(self, name: str, password: str) -> None:
        self.open("/login/")
        self.page.locator("#id_username").fill(name)
        self.page.locator("#id_password").fill(password)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(f"{self.site}/")
