"""Monitoring: `/readyz` for load balancers, `/metrics` for Prometheus."""

from __future__ import annotations

import hmac
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.request import Request

from analysis.accounts.authentication import PasswordAuthentication, TokenAuthentication
from analysis.api.v1.base.views import AnyFormat
from analysis.http.errors import error_body
from analysis.models import ApiToken
from analysis.permissions import may_read
from analysis.workers.health import readiness
from analysis.workers.metrics import metrics_text


class MayScrape(BasePermission):
    """Allows clients with the token of the settings, and people who may read."""

    message = "Sign in with an account that may read, or send MEMORYMARK_METRICS_TOKEN as a Bearer token"

    def has_permission(self, request: Any, view: Any) -> bool:
        return has_scrape_token(request) or may_read(request.user)


class ScraperAuthentication(TokenAuthentication):
    """Skips people's tokens if the request has the token of the settings, which belongs to no person."""

    def authenticate(self, request: Any) -> tuple[User, ApiToken] | None:
        return None if has_scrape_token(request) else super().authenticate(request)


def has_scrape_token(request: HttpRequest) -> bool:
    """Compare the token in constant time; without a token in the settings none matches."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    token = settings.METRICS_TOKEN
    return bool(token) and scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


class Ready(AnyFormat):
    """`GET /readyz`: 200 while the portal can execute runs, otherwise 503 with the reasons."""

    authentication_classes = ()  # reading a session needs the database, which may be away
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> HttpResponse:
        seen = readiness()
        return JsonResponse(seen.to_dict(), status=200 if seen.is_ready else 503, headers={"Cache-Control": "no-store"})


class Metrics(AnyFormat):
    """`GET /metrics`, in Prometheus' text format."""

    authentication_classes = (ScraperAuthentication, PasswordAuthentication, SessionAuthentication)
    permission_classes = (MayScrape,)

    def get(self, request: Request) -> HttpResponse:
        try:
            return HttpResponse(metrics_text(), content_type=CONTENT_TYPE_LATEST)
        except DatabaseError:
            return JsonResponse(error_body("The database does not answer"), status=503)
