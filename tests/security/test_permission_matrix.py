"""Every address is answered, to each of five people, as the table says; one that is not in the table fails."""

import re
from pathlib import Path

import pytest
from django.test import Client

from tests.security.permission_table import ADMIN, ADMIN_BESIDES, PAGES_AND_API
from tests.security.routes import PEOPLE, UNSAFE, Portal, routes

pytestmark = pytest.mark.django_db

REFUSED = {"401", "403", "404", "login", "302"}
OF_A_ROW = r"admin/(?P<kind>\w+/\w+)/(?P<what>|add/|<path:object_id>/(change|delete|history)/|<path:object_id>/)"


def lines_of(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()[1:]]


EXPECTED = {(method, address[1:]): cells for method, address, *cells in lines_of(PAGES_AND_API)}
BESIDES = dict(lines_of(ADMIN_BESIDES))
KINDS = {kind: cells for kind, *cells in lines_of(ADMIN)}


def addresses(*, of_admin: bool) -> list[str]:
    return [route for route in routes() if route.startswith("admin/") == of_admin]


def rows_of_admin() -> dict[str, re.Match[str]]:
    """Addresses that the admin panel has for each kind of row, beside those that stand in their own table."""
    others = (route for route in addresses(of_admin=True) if route not in BESIDES)
    return {route: found for route in others if (found := re.fullmatch(OF_A_ROW, route))}


@pytest.fixture
def portal(settings, tmp_path: Path) -> Portal:
    settings.COMMANDS_FILE = tmp_path / "commands.toml"  # the name is the one that the addresses are tried with
    settings.COMMANDS_FILE.write_text('[[command]]\nname = "measuring"\ncommand = ["train", "{batch_size}"]\n')
    return Portal()


def test_every_address_is_in_the_table_and_nothing_else():
    assert set(addresses(of_admin=False)) == {address for _, address in EXPECTED}
    in_tables = {*BESIDES, *rows_of_admin()}
    assert set(addresses(of_admin=True)) == in_tables
    assert {found["kind"] for found in rows_of_admin().values()} == set(KINDS)


@pytest.mark.slow
def test_every_person_is_answered_as_the_table_says(portal):
    wrong = []
    for (method, route), expected in EXPECTED.items():
        got = [portal.ask(person, method, route) for person in PEOPLE]
        if got != expected:
            wrong.append(f"{method} /{route}: {' '.join(got)}, not {' '.join(expected)}")
    assert wrong == []


@pytest.mark.slow
def test_a_method_that_is_not_in_the_table_is_known_to_no_address(portal):
    """Asked for by whoever may do most."""
    tried = [(method, route) for route in addresses(of_admin=False) for method in ("GET", *UNSAFE)]
    got = {asked: portal.ask("manager", *asked) for asked in tried if asked not in EXPECTED}
    assert {asked: status for asked, status in got.items() if status != "405"} == {}


@pytest.mark.slow
def test_the_admin_panel_lets_nobody_in_but_managers(portal):
    asked = (("anonymous", "GET"), ("viewer", "POST"), ("operator", "GET"), ("other", "POST"))
    got = {(*who, route): portal.ask(*who, route) for route in addresses(of_admin=True) for who in asked}
    assert {request: status for request, status in got.items() if status not in REFUSED} == {}
    assert {status for (person, *_), status in got.items() if person != "anonymous"} == {"403"}


@pytest.mark.slow
def test_a_manager_is_answered_by_the_admin_panel_as_the_table_says(portal):
    asked = {"list": ("GET", ""), "add": ("GET", "add/"), "view": ("GET", "<path:object_id>/change/")}
    asked |= {"save": ("POST", "<path:object_id>/change/"), "delete": ("GET", "<path:object_id>/delete/")}
    got = {
        kind: [portal.ask("manager", method, f"admin/{kind}/{rest}").rstrip("+") for method, rest in asked.values()]
        for kind in KINDS
    }
    assert got == KINDS
    assert {route: portal.ask("manager", "GET", route) for route in BESIDES if route != "admin/logout/"} == {
        route: status for route, status in BESIDES.items() if route != "admin/logout/"
    }


def test_nothing_that_a_session_sends_is_taken_without_the_token_of_a_form(portal):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(portal.people["manager"])
    pages = [route for method, route in EXPECTED if method == "POST" and not route.startswith(("api/", "analyze"))]
    statuses = {route: strict.post(portal.address("POST", route)).status_code for route in (*pages, "api/v1/runs/")}
    assert {route: status for route, status in statuses.items() if status != 403} == {}


def test_what_is_open_to_everybody_names_nobody_and_nothing_that_was_measured(portal):
    is_open = [(method, route) for (method, route), cells in EXPECTED.items() if cells[0] in ("200", "503")]
    # of a share link the address itself is the secret: tests/pages/share says what it shows
    is_open = [(method, route) for method, route in is_open if not route.startswith("share/")]
    assert {route for _, route in is_open} == {"", "readyz", "health", "models", "login/"}
    said = "".join(portal.read("anonymous", method, route) for method, route in is_open)
    assert not [word for word in ("operator", "Test CPU", "a-tag", "mm_w_") if word in said]
