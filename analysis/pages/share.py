"""The pages of a share link. They show the same to everybody, also to people who are signed in."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import ceil
from typing import Any, TypeAlias

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from analysis.accounts.rate_limit import seconds_to_wait
from analysis.http.client_ip import counted_address
from analysis.http.errors import error_page, page_not_found
from analysis.models import Run, ShareLink
from analysis.pages.kinds import pages_of
from analysis.pages.run import context as run_page
from analysis.pages.run.chart_files import chart_file
from analysis.presentation.badge import badge
from analysis.presentation.origin import NOT_VERIFIED_NOTE
from analysis.presentation.public_run import public_run
from analysis.presentation.unreadable import UnreadableError, read_stored
from analysis.runs.marks.share_links import share_link_of

SharedView: TypeAlias = Callable[..., HttpResponse]
THROTTLE = "share"
_SVG = "image/svg+xml"
_HEADERS = {
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "Referrer-Policy": "no-referrer",  # the address is the secret: no other site may learn it
    "Cache-Control": "private, no-store",
}
_NOBODY = {
    **{"user": AnonymousUser(), "is_guest": True, "may_read": False, "may_start": False, "may_manage": False},
    **{"menu": (), "messages": (), "fleet_alarm": None, "trust_text": NOT_VERIFIED_NOTE},
}
"""Replaces what the context processors say of the reader: a link shows everybody the same page."""

_INTERNAL = ("frontier", "frontier_chart", "changes", "changes_chart", "change_start", "cards", "estimates")
"""Parts of a run's page that lead to other runs, or offer to start some."""


def by_link(view: SharedView) -> SharedView:
    """Give a view the run of its link instead of the secret. Ended and unknown links get the same 404."""

    @wraps(view)
    def checked(request: HttpRequest, secret: str, **values: Any) -> HttpResponse:
        wait_seconds = seconds_to_wait(THROTTLE, f"address {counted_address(request)}")
        if wait_seconds:
            text = f"Your address opened too many shared links. Try again in {ceil(wait_seconds)} s."
            response = error_page(429, "Too many requests", text)
            response.headers["Retry-After"] = str(ceil(wait_seconds))
        elif link := share_link_of(secret):
            response = _answer(view, request, link, secret, **values)
        else:
            response = _not_found(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return login_not_required(require_safe(checked))


def _answer(view: SharedView, request: HttpRequest, link: ShareLink, secret: str, **values: Any) -> HttpResponse:
    try:
        return view(request, read_stored(public_run, link.run), link, secret, **values)
    except (Http404, UnreadableError):
        return _not_found(request)


def _not_found(request: HttpRequest) -> HttpResponse:
    """Answer the same 404 to everybody: the page of errors has a menu for people who are signed in."""
    request.user = AnonymousUser()
    return page_not_found(request, Http404())


@by_link
def shared_run(request: HttpRequest, run: Run, link: ShareLink, secret: str) -> HttpResponse:
    template, more = pages_of(run).result_page(run, QueryDict())
    more = {name: value for name, value in more.items() if name not in _INTERNAL}
    share = {"ends_at": link.ends_at, "secret": secret}
    return render(request, template, {**run_page.run_context(run), **more, **_NOBODY, "share": share})


@by_link
def shared_chart(request: HttpRequest, run: Run, link: ShareLink, secret: str, key: str) -> HttpResponse:
    return render(request, *chart_file(run, key), content_type=_SVG)


@by_link
def shared_badge(request: HttpRequest, run: Run, link: ShareLink, secret: str) -> HttpResponse:
    """Answer the result in one line, as a picture that other sites may show."""
    response = render(request, "analysis/svg/badge.svg", {"badge": badge(run)}, content_type=_SVG)
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
