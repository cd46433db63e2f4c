"""Pictures of a running portal: the README's three, or every page at the two widths that are checked by eye.

    python manage.py up                                            # in another terminal; then measure something
    python -m docs.screenshots --password ... --result 1 --compare 1 2       # docs/images, with captions
    python -m docs.screenshots --password ... --every screenshots            # all pages, 1280 and 390 px

The pictures show what those runs measured. The captions quote the pages.
Needs what the browser tests need: playwright and a Chromium on the path.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.browser.chromium import PHONE, WIDE, Visitor, find_chromium, launched

IMAGES = Path(__file__).parent / "images"
HEIGHT, MAX_BYTES = 900, 300_000
README_HEIGHTS = {"result": 1250, "compare": 1500, "matrix": 1260}
PAGES = ("/", "/runs/", "/estimates/", "/matrix/", "/fleet/", "/trend/")


def main() -> int:
    """Take the pictures; exit status 1 when a page logged an error, 2 when there is no Chromium."""
    arguments = _arguments()
    binary = find_chromium()
    if binary is None:
        sys.stderr.write("No Chromium on the path.\n")
        return 2
    with launched(binary) as browser:
        context = browser.new_context(viewport={"width": WIDE, "height": HEIGHT}, color_scheme="dark")
        visitor = Visitor(context.new_page(), arguments.address)
        visitor.log_in(arguments.user, arguments.password)
        if arguments.every:
            _every_page(visitor, arguments)
        else:
            _for_readme(visitor, arguments)
        sys.stderr.writelines(f"{error}\n" for error in visitor.errors)
        return 1 if visitor.errors else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--address", default="http://127.0.0.1:5001")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", required=True)
    parser.add_argument("--result", type=int, default=1, metavar="RUN", help="a finished run")
    parser.add_argument("--compare", type=int, nargs=2, default=(1, 2), metavar="RUN", help="two finished runs")
    parser.add_argument("--every", type=Path, metavar="FOLDER", help="every page at both widths, instead")
    return parser.parse_args()


def _for_readme(visitor: Visitor, arguments: argparse.Namespace) -> None:
    """The top of three pages, and their captions as Markdown on standard output."""
    IMAGES.mkdir(exist_ok=True)
    first, second = arguments.compare
    shown = {
        "result": (f"/runs/{arguments.result}/", f"The result of run {arguments.result}, measured on a CPU"),
        "compare": (f"/compare/?ids={first}&ids={second}", "Comparison of two runs, both measured on a CPU"),
        "matrix": ("/matrix/", "Which card takes how much of which model: estimates, and what was measured"),
    }
    for name, (path, caption) in shown.items():
        visitor.resize(WIDE, README_HEIGHTS[name])
        _open(visitor, path)
        picture = IMAGES / f"{name}.png"
        visitor.page.screenshot(path=picture)
        if picture.stat().st_size > MAX_BYTES:
            raise SystemExit(f"{picture} is larger than {MAX_BYTES} bytes")
        said = visitor.page.get_by_role("heading", level=1).inner_text()
        print(f"![{caption}: {said}](docs/images/{picture.name})")


def _every_page(visitor: Visitor, arguments: argparse.Namespace) -> None:
    """Whole pages, however long."""
    arguments.every.mkdir(parents=True, exist_ok=True)
    ids = "&".join(f"ids={pk}" for pk in arguments.compare)
    for path in (*PAGES, f"/runs/{arguments.result}/", f"/compare/?{ids}"):
        name = path.split("?")[0].strip("/").replace("/", "-") or "start"
        for width in (WIDE, PHONE):
            visitor.resize(width, HEIGHT)
            _open(visitor, path)
            visitor.page.screenshot(path=arguments.every / f"{name}-{width}.png", full_page=True)


def _open(visitor: Visitor, path: str) -> None:
    """With everything it loads."""
    visitor.open(path)
    visitor.page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    raise SystemExit(main())
