"""The answer to a form that came too often."""

from __future__ import annotations

from collections.abc import Callable

from django.forms import BaseForm
from django.http import HttpResponse

from analysis.accounts.rate_limit import RateLimited


def too_many_requests(error: RateLimited, form: BaseForm, page: Callable[..., HttpResponse]) -> HttpResponse:
    form.add_error(None, str(error))
    response = page(status=429)
    response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
