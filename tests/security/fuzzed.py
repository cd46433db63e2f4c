"""Made-up requests against the whole API: drawn from its own description, and from what breaks programs."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from analysis.accounts.tokens import token_create
from analysis.permissions import MANAGER
from engine.settings.catalog import workload_ids
from memorymark_site.wsgi import application
from tests.factories import make_user
from tests.security.routes import FINISHED, UNDER_WAY, Portal

SCHEMA = "/api/schema/?format=json"
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


class Fuzz:
    """Asks as an operator and as a manager, by turns; whatever a request did is taken back."""

    def __init__(self) -> None:
        self.portal = Portal()
        owner = self.portal.people["operator"]
        self._secrets = [_secret_of(owner), _secret_of(make_user("fuzzer", MANAGER))]
        self.statuses: Counter[int] = Counter()
        self.schema = schemathesis.openapi.from_wsgi(SCHEMA, _served, headers=self._headers())
        self.schema.config.generation.with_security_parameters = False  # each request shows a token that is good

    def operations(self) -> list[Any]:
        return [found.ok() for found in self.schema.get_all_operations()]

    def run(self, operation: Any, mode: GenerationMode, cases: int, *, is_repeatable: bool) -> None:
        """Raises what hypothesis raises: the smallest request that is answered wrongly."""

        @settings(
            max_examples=cases,
            deadline=None,
            database=None,
            derandomize=is_repeatable,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def answered_as_described(case: Any) -> None:
            self._one(case, names_rows=mode.is_positive)

        answered_as_described()

    def _one(self, case: Any, *, names_rows: bool) -> None:
        count = self.statuses.total()
        for name in case.path_parameters or {}:
            if names_rows and count % 3:
                case.path_parameters[name] = str(self.portal.rows[(FINISHED, UNDER_WAY)[count % 2]])
        if names_rows and count % 3:
            for part in (case.body, case.query):  # any text may be a model's name there: most is none
                if isinstance(part, dict) and "model" in part:
                    part["model"] = workload_ids()[count % len(workload_ids())]
        with transaction.atomic():
            response = case.call(headers=self._headers())
            transaction.set_rollback(True)
        self.statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._secrets[self.statuses.total() % 2]}"}


def _served(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Answer as a web server does: read the whole response, then close it. Else streams would stay open."""
    response = application(environ, start_response)
    try:
        return [b"".join(response)]
    finally:
        response.close()


def _secret_of(person: Any) -> str:
    return token_create(owner=person, name="fuzz", may_write=True, expires_at=None)[1]


@contextmanager
def one_connection() -> Iterator[None]:
    """The entry point closes the database after each request, and with it the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)
