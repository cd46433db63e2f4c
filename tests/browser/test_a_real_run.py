"""From the form to a result of a real run on this machine's CPU, in a real installation: `manage.py up`, nothing faked.

One small run is shared by all checks here, because it takes longer than all of them.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, expect

from tests.browser.chromium import WIDE, Visitor

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""On a busy machine threads that wait for each other take three times as long, and nothing here is about speed."""
START_SECONDS, RUN_SECONDS, STOP_SECONDS = 60, 180, 20
ASKED = {"Sequence length": "16", "Memory limit": "40MiB", "Your batch size today": "2"}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of a running `up` in an empty folder, and the password of its administrator."""
    folder = tmp_path_factory.mktemp("installation")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
    own = {"MEMORYMARK_DATA_DIR": str(folder), "MEMORYMARK_LOCK_DIR": str(folder / "locks"), **ONE_THREAD}
    with (folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(port)],
            env=kept | own,
            cwd=settings.BASE_DIR,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield f"http://127.0.0.1:{port}", password_told(folder / "output.txt")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_SECONDS)


def password_told(output: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        text = output.read_text()
        if (told := re.search(r"password: (\S+)", text)) and "MemoryMark is at" in text:
            return told[1]
        time.sleep(0.1)
    raise AssertionError(f"not up after {START_SECONDS} s: {output.read_text()}")


@pytest.fixture(scope="module")
def window(chromium: Browser, installation: tuple[str, str]) -> Iterator[Visitor]:
    """Where the administrator, logged in by the page, asked for a run and saw its result come."""
    address, password = installation
    with chromium.new_context(viewport={"width": WIDE, "height": 900}) as context:
        visitor = Visitor(context.new_page(), address)
        visitor.log_in("admin", password)
        ask(visitor)
        visitor.page.wait_for_url("**/runs/1/")
        expect(visitor.page.get_by_text("trains with up to").first).to_be_visible(timeout=RUN_SECONDS * 1000)
        yield visitor


def ask(visitor: Visitor) -> None:
    visitor.page.locator("details.more > summary").click()
    visitor.page.get_by_label("Optimizer", exact=True).select_option("sgd")
    for label, value in ASKED.items():
        visitor.page.get_by_label(label).fill(value)
    visitor.page.get_by_role("button", name="Find the largest batch size").click()


@pytest.fixture
def result(window: Visitor) -> Visitor:
    window.open("/runs/1/")
    return window


def test_the_result_is_certified_by_a_refusal(result: Visitor) -> None:
    result.page.get_by_role("link", name="Probes", exact=True).click()
    expect(result.page.get_by_role("row").filter(has_text="out of memory").first).to_be_visible()
    expect(result.page.get_by_text("limited to 40 MiB").first).to_be_visible()
    assert (result.errors, result.foreign_requests) == ([], [])


def test_the_matrix_and_the_totals_count_it(window: Visitor) -> None:
    window.open("/matrix/?optimizer=sgd")
    expect(window.page.get_by_role("link", name="measured, run 1")).to_be_visible()
    window.open("/")
    expect(window.page.get_by_role("region", name="Totals of this lab")).to_contain_text("1 setup")
