"""Chromium, and who sits before it. On a machine without one these tests are skipped, and say so."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser

from tests.browser.chromium import PHONE, WIDE, Visitor, find_chromium, launched

Visit = Callable[..., Visitor]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for a file. Its event loop would be in the way of other tests, so it ends with the file."""
    binary = find_chromium()
    if binary is None:
        pytest.skip("no Chromium on this machine")
    with pytest.MonkeyPatch.context() as patch, launched(binary) as browser:
        # playwright's loop runs in this thread, and Django takes any loop for a program that must not block
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield browser


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    """Opens windows on a portal: `visit(address, user, width, **what playwright's context takes)`."""
    contexts = []

    def open_window(site: str, user: User | None = None, width: int = WIDE, **options: Any) -> Visitor:
        options = {"color_scheme": "dark", **options}  # a headless browser asks for the light one
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        if user is not None:
            client = Client()
            client.force_login(user)
            context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site}])
        return Visitor(context.new_page(), site)

    yield open_window
    for context in contexts:
        context.close()


@pytest.fixture
def window(visit: Visit, live_server: Any, alice: User) -> Visitor:
    return visit(live_server.url, alice)


@pytest.fixture
def phone(visit: Visit, live_server: Any, alice: User) -> Visitor:
    return visit(live_server.url, alice, PHONE)
