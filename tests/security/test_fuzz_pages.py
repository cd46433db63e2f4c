"""Every page and form under made-up input: refused or passed over, but never a 5xx, and no header that was not meant.

MEMORYMARK_FUZZ_FORMS=200 python -m pytest -n 0 tests/security/test_fuzz_pages.py      more than in the suite
"""

import os
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.accounts.views import TokenForm
from analysis.lists.matrix.query import MatrixForm
from analysis.lists.runs.filters import RunFilter
from analysis.lists.trend.query import TrendForm
from analysis.models import Run
from analysis.pages.commands.views import FromForm
from analysis.pages.estimates.forms import QuestionForm
from analysis.pages.fleet.views import FleetQuery
from analysis.pages.home.forms import RunForm
from analysis.pages.kinds.estimate import CardsForm
from analysis.pages.validations.views import ValidationQuery
from analysis.pages.what_to_change.context import NewChangesForm, WhereForm
from analysis.presentation.advice_query import AdviceForm
from tests.security.permission_table import PAGES_AND_API
from tests.security.routes import FINISHED, Portal

pytestmark = pytest.mark.django_db

ASKED_FOR_MORE = os.environ.get("MEMORYMARK_FUZZ_FORMS")
CASES = int(ASKED_FOR_MORE or "4")
LARGE = str(2**63)

NASTY = [
    "",
    " ",
    "0",
    "-1",
    "1",
    "1.5",
    "1e400",
    "-1e400",
    "nan",
    "inf",
    LARGE,
    f"-{LARGE}1",
    "9" * 25,
    "9" * 5_000,
    "٣",
    "²",
    "\0",
    "a\0b",
    "\ud800",
    "\ufeff\u202e\u2028",
    "🦙" * 300,
    "a" * 100_000,
    "\r\nSet-Cookie: a=b",
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "'; DROP TABLE analysis_run; --",
    "%' OR 1=1",
    "<script>alert(1)</script>",
    "{{ settings.SECRET_KEY }}",
    "${jndi:ldap://x}",
    "true",
    "null",
    "[]",
    "{",
    "[" * 100_000,
    "2024-02-30",
    "0000-00-00",
    "99999-01-01",
    "1,2,1",
    "1,,2",
    ",".join(map(str, range(1_000))),
    "//evil.example",
    "javascript:alert(1)",
    "-created",
    "bert-tiny",
    "finished",
    "Test CPU",
]
_HISTORY = [*RunFilter.base_filters, "sort", "columns", "after", "before", "view", "nonsense"]
_QUESTION = [*QuestionForm.base_fields, *CardsForm.base_fields]
_RUN_FORM = [*RunForm.base_fields, "from", "clone"]
FIELDS = {
    "GET /": _RUN_FORM,
    "GET /runs/": _HISTORY,
    "GET /runs/export.csv": _HISTORY,
    "GET /runs/export.json": _HISTORY,
    "GET /runs/<int:run_id>/": ["price_per_hour_usd", "hours_per_run", "runs_per_year", "current_batch_size"],
    "GET /runs/<int:run_id>/live/": ["seen"],
    "GET /compare/": ["ids", "baseline", "x", "y", "all"],
    "GET /matrix/": list(MatrixForm.base_fields),
    "GET /trend/": list(TrendForm.base_fields),
    "GET /estimates/": _QUESTION,
    "POST /estimates/": _QUESTION,
    "GET /help/": ["q"],
    "GET /commands/": [*FromForm.base_fields],
    "GET /validations/": [*ValidationQuery.base_fields],
    "GET /what-to-change/": [*WhereForm.base_fields],
    "POST /what-to-change/": [*NewChangesForm.base_fields],
    "GET /runs/<int:run_id>/advice/": [*AdviceForm.base_fields],
    "GET /fleet/": [*FleetQuery.base_fields],
    "GET /fleet/now/": [*FleetQuery.base_fields],
    "GET /login/": ["next"],
    "POST /login/": ["username", "password", "next"],
    "POST /runs/new/": _RUN_FORM,
    "POST /runs/change/": ["run", "action", "tag", "view"],
    "POST /runs/views/": ["name", "query", "shared", "is_shared"],
    "POST /runs/<int:run_id>/annotate/": ["name", "note", "tags"],
    "POST /runs/<int:run_id>/pin/": ["pin"],
    "POST /trend/acknowledge/<int:run_id>/": ["metric", "note"],
    "POST /account/password/": ["old_password", "new_password1", "new_password2"],
    "POST /account/tokens/": [*TokenForm.base_fields],
}
"""What pages read; to the others a parameter is given that nobody knows."""

PAGES = [line.split()[:2] for line in PAGES_AND_API.strip().splitlines()[1:] if "api/" not in line]
ASKED = sorted({f"{method} {address}" for method, address in PAGES if method in ("GET", "POST")})


def inputs(asked: str) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Some of its fields, repeated perhaps, each with something nasty or made up."""
    name = st.sampled_from(FIELDS.get(asked, ["nonsense"]))
    return st.lists(st.tuples(name, st.sampled_from(NASTY) | st.text(max_size=30)), min_size=1, max_size=6)


class Asker:
    """The operator, whose changes are taken back."""

    def __init__(self, portal: Portal) -> None:
        self.portal, self.client = portal, Client(raise_request_exception=False)
        self.client.force_login(portal.people["operator"])

    def ask(self, asked: str, given: list[tuple[str, str]], *, as_guest: bool = False) -> Any:
        method, route = asked.split()
        address = self.portal.address(method, route[1:]).split("?")[0]
        encoded = urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in given])
        client = Client(raise_request_exception=False) if as_guest else self.client
        with transaction.atomic():
            if method == "GET":
                response = client.get(address, QUERY_STRING=encoded)
            else:
                response = client.post(address, encoded, content_type="application/x-www-form-urlencoded")
            if response.streaming:
                b"".join(response.streaming_content)
            transaction.set_rollback(True)
        return response


@pytest.fixture
def asker() -> Asker:
    return Asker(Portal())


@pytest.mark.slow
def test_no_input_breaks_a_page(asker):
    for asked in ASKED:
        try_inputs(asker, asked)


def try_inputs(asker: Asker, asked: str) -> None:
    @settings(max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(given=inputs(asked))
    def is_answered(given: list[tuple[str, str]]) -> None:
        response = asker.ask(asked, given, as_guest="/login/" in asked)
        assert response.status_code < 500 or "readyz" in asked, asked
        assert "Set-Cookie: a=b" not in str(response.headers.get("Location"))

    is_answered()


@pytest.mark.slow
def test_no_nasty_value_breaks_a_page(asker):
    """Each field takes them in turn, together with the next ones in the others; when asked for more, all of them."""
    for asked, fields in FIELDS.items():
        for start in range(0, len(NASTY), 1 if ASKED_FOR_MORE else 4):
            given = [(name, NASTY[(start + place) % len(NASTY)]) for place, name in enumerate(fields)]
            status = asker.ask(asked, given, as_guest="/login/" in asked).status_code
            assert status < 500, f"{asked}: {[(name, value[:40]) for name, value in given]}"


NUMBERS = (0, 2**31, 2**63 - 1, 2**63, 2**64, 10**25, "9" * 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{number}"[:12])
def test_a_row_that_cannot_be_there_is_not_found(number, asker):
    asker.client.force_login(asker.portal.people["manager"])  # others are told nothing of what they may not change
    numbered = [line for line in PAGES_AND_API.strip().splitlines()[1:] if "<int:" in line]
    for method, route, *_ in map(str.split, numbered):
        address = asker.portal.address(method, route[1:], number=str(number))
        status = getattr(asker.client, method.lower())(address).status_code
        says_so_on_its_page = route in ("/runs/views/<int:view_id>/delete/", "/account/tokens/<int:token_id>/revoke/")
        assert status in (404, 302 if says_so_on_its_page else 404), f"{method} {address[:60]}"


PATHS = ("//", "/..%2f..%2fetc/passwd", "/%2e%2e/", "/static/..%2f..%2fmanage.py", "/static/%2e%2e/%2e%2e/manage.py")
ODD = (
    "/runs/1%0d%0aSet-Cookie:a=b/",
    "/runs//1/",
    "/api/v1//runs/",
    "/%c0%ae%c0%ae/",
    "/%ff%fe/",
    "/api/v1/%ed%a0%80/",
)


@pytest.mark.parametrize("path", [*PATHS, *ODD])
def test_no_address_leads_out_or_breaks(path, asker):
    response = asker.client.get(path)
    assert response.status_code in (301, 302, 400, 404) or path == "//"
    assert "Set-Cookie: a=b" not in str(response.headers.get("Location"))


def test_what_people_write_gets_into_no_header(asker):
    """A name with a line break in it, and where a file's name or an address would carry it."""
    run = Run.objects.get(pk=asker.portal.rows[FINISHED])
    Run.objects.filter(pk=run.pk).update(name='a"\r\nSet-Cookie: a=b', model="bert-tiny")
    for what in ("export.json", "export.csv", "charts/memory.svg"):
        headers = str(asker.client.get(f"/runs/{run.pk}/{what}").headers)
        assert "Set-Cookie: a=b" not in headers


BODIES = {
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "no end": b'{"model": "bert',
    "infinite": b'{"time_budget_seconds": 1e400}',
    "not a number": b'{"time_budget_seconds": NaN}',
    "large number": b'{"max_batch_size": 99999999999999999999999}',
    "just above": b'{"max_batch_size": 9223372036854775808}',
    "nineteen nines": b'{"ids": [1, 9999999999999999999], "max_batch_size": 9999999999999999999}',
    "endless number": b'{"max_batch_size": ' + b"9" * 60_000 + b"}",
    "nul": b'{"model": "a\\u0000b"}',
    "half a pair": b'{"model": "\\ud800"}',
    "not utf-8": b'{"model": "\xff\xfe"}',
    "twice": b'{"model": "bert", "model": "gpt2"}',
    "a list": b"[]",
    "nothing": b"",
    "null": b"null",
    "a word": b"\xef\xbb\xbf{}",
}


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_no_body_breaks_the_api(body, asker):
    lines = [line.split()[:2] for line in PAGES_AND_API.strip().splitlines()[1:] if "api/" in line or "analyze" in line]
    for method, route in lines:
        if method != "GET":
            with transaction.atomic():
                address = asker.portal.address(method, route[1:])
                response = asker.client.generic(method, address, body, content_type="application/json")
                transaction.set_rollback(True)
            assert response.status_code < 500, f"{method} {route}: {response.content[:300]!r}"
