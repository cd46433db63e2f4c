"""What forms that start a run have in common: errors at their fields, and the start itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django import forms
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from analysis.accounts.rate_limit import CREATE, RateLimited, check_rate_limit
from analysis.permissions import signed_in_user
from analysis.runs.services import run_create
from engine.errors import SpecError


def too_many_requests(error: RateLimited, form: BaseForm, page: Callable[..., HttpResponse]) -> HttpResponse:
    form.add_error(None, str(error))
    response = page(status=429)
    response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


class SpecForm(forms.Form):
    FIELD_OF: ClassVar[Mapping[str, str]] = {}
    """The fields that are called otherwise than their setting."""

    def add_spec_error(self, error: SpecError) -> None:
        """Show the spec's error at its field, or at the top if the form has no such field."""
        at = self.FIELD_OF.get(error.field or "", error.field)
        if at in self.fields:
            self.add_error(at, error.reason)
        else:
            self.add_error(None, str(error))

    def submission(self) -> dict[str, Any]:
        raise NotImplementedError


def start_run(request: HttpRequest, form: SpecForm, page: Callable[..., HttpResponse]) -> HttpResponse:
    user = signed_in_user(request)
    if form.is_valid():
        try:
            check_rate_limit(CREATE, user)
            return redirect(run_create(**form.submission(), requested_by=user))
        except SpecError as error:
            form.add_spec_error(error)
        except RateLimited as error:
            return too_many_requests(error, form, page)
    return page(status=422)
