"""Screenshots of a running portal at the two widths that are checked by eye, 1280 and 390 px.

    python manage.py up                                 # in another terminal
    python -m docs.screenshots --password ... --run 1 --out screenshots

Takes the login page, home, the history, and each run that is named. Needs a Chromium on the path.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.browser.chromium import Chromium, find_chromium

WIDTHS = (1280, 390)


def main() -> int:
    """Take the pictures; exit status 1 when a page logged an error, 2 when there is no Chromium."""
    arguments = _arguments()
    binary = find_chromium()
    if binary is None:
        sys.stderr.write("No Chromium on the path.\n")
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Chromium(binary, Path(profile)) as browser:
        _take(browser, arguments, "login", "/login/")
        _log_in(browser, arguments)
        for name, path in [("home", "/"), ("runs", "/runs/"), *((f"run-{pk}", f"/runs/{pk}/") for pk in arguments.run)]:
            _take(browser, arguments, name, path)
        sys.stderr.writelines(f"{error}\n" for error in browser.errors)
        return 1 if browser.errors else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--address", default="http://127.0.0.1:5001")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", required=True)
    parser.add_argument("--run", type=int, action="append", default=[], help="a run's number; may be repeated")
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    return parser.parse_args()


def _log_in(browser: Chromium, arguments: argparse.Namespace) -> None:
    browser.open(f"{arguments.address}/login/")
    for field, value in (("username", arguments.user), ("password", arguments.password)):
        browser.evaluate(f"document.getElementById('id_{field}').value = {json.dumps(value)}")
    browser.evaluate("document.querySelector('main form').submit()")
    browser.wait_until("location.pathname === '/' && document.readyState === 'complete'")


def _take(browser: Chromium, arguments: argparse.Namespace, name: str, path: str) -> None:
    for width in WIDTHS:
        browser.set_width(width)
        browser.open(arguments.address + path)
        if width > 700:
            browser.wait_until("!document.querySelector('[data-chart]') || document.querySelector('.main-svg')")
        browser.screenshot(arguments.out / f"{name}-{width}.png")


if __name__ == "__main__":
    raise SystemExit(main())
