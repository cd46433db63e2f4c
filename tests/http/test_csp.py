"""The headers that every answer carries."""

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from analysis.http.csp import ContentPolicyMiddleware

pytestmark = pytest.mark.django_db


def test_a_page_loads_its_own_hosts_files_and_nothing_inline():
    middleware = ContentPolicyMiddleware(lambda request: HttpResponse())
    policy = middleware(RequestFactory().get("/")).headers["Content-Security-Policy"]
    assert "default-src 'self'; script-src 'self'; style-src 'self';" in policy
    assert "frame-ancestors 'none'; base-uri 'self'; form-action 'self'" in policy
    assert "unsafe" not in policy


def test_no_other_origin_may_read_answers_unless_named():
    headers = Client().get("/health", headers={"Origin": "https://elsewhere.example"}).headers
    assert "Access-Control-Allow-Origin" not in headers


def test_a_host_name_that_is_not_allowed_is_refused():
    assert Client().get("/health", headers={"Host": "evil.example"}).status_code == 400
