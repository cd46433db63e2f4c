"""The login, and the page of a person's own account: roles, quotas and their use, password, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.core.validators import MaxLengthValidator
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import path, reverse_lazy
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from analysis.accounts.middleware import login_required_only
from analysis.accounts.quotas import limits_of, use_of
from analysis.accounts.tokens import TOKENS_PER_PERSON, token_create, token_revoke
from analysis.formatting import duration
from analysis.http.page_requests import portal_address
from analysis.http.setting_fields import offer
from analysis.models import ApiToken, Device, Trust
from analysis.models.accounts import TOKEN_NAME_LENGTH
from analysis.permissions import may_manage, may_start, signed_in_user
from engine.errors import SpecError

_READS, _WRITES, _REPORTS = "read", "write", "report"
_DAYS = {"30": "30 days", "90": "90 days", "365": "a year", "": "until it is revoked"}


class LoginForm(AuthenticationForm):
    """Django's form with a check of the name's length, which Django omits: the count of failures stores the name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].validators.append(MaxLengthValidator(User._meta.get_field("username").max_length))


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=TOKEN_NAME_LENGTH,
        help_text="Purpose of the token, such as the program that uses it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scope = forms.ChoiceField(label="Rights", choices=((_READS, "read"),), initial=_READS)
    days = forms.ChoiceField(label="Valid for", choices=tuple(_DAYS.items()), initial="90", required=False)

    is_trusted = forms.BooleanField(
        label="Trust it: the runs it reports count like those measured here", initial=True, required=False
    )

    def __init__(self, *args: Any, person: User, **kwargs: Any) -> None:
        """Offer the rights to write and to report to who may start runs, and trust to GPU managers."""
        super().__init__(*args, **kwargs)
        if not may_manage(person):
            del self.fields["is_trusted"]
        if may_start(person):
            writes = (_WRITES, "read, start runs and change mine")
            offer(self, "scope", [(_READS, "read"), writes, (_REPORTS, "only report runs of other machines")])

    @property
    def token_fields(self) -> dict[str, Any]:
        values = self.cleaned_data
        scope, days = values["scope"], values["days"]
        return {
            "name": values["name"],
            "may_write": scope == _WRITES,
            "only_reports": scope == _REPORTS,
            "expires_at": timezone.now() + timedelta(days=int(days)) if days else None,
            "is_trusted": scope != _READS and values.get("is_trusted", False),
        }


TOKENS_SHOWN = 2 * TOKENS_PER_PERSON
REPORT_TOKEN_DAYS = 90


@dataclass(frozen=True, slots=True)
class QuotaLine:
    title: str
    used: int | None
    most: str


@login_required_only
@never_cache
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    return _page(request, TokenForm(person=signed_in_user(request)))


@login_required_only
@never_cache
@require_POST
def token_create_view(request: HttpRequest) -> HttpResponse:
    """Create a token. Only this response shows its secret: no session and no message stores it."""
    person = signed_in_user(request)
    form = TokenForm(request.POST, person=person)
    if form.is_valid():
        try:
            token, secret = token_create(owner=person, **form.token_fields)
        except SpecError as error:
            form.add_error("name", error.reason)
        else:
            return _page(request, TokenForm(person=person), new_token=token, secret=secret)
    return _page(request, form, status=422)


@never_cache
@require_POST
def report_token_create(request: HttpRequest) -> HttpResponse:
    """Create a token for reports alone, in one click, and show the commands with it: only this once."""
    now = timezone.now()
    try:
        token, secret = token_create(
            owner=signed_in_user(request),
            name=f"reports of a script, {now:%Y-%m-%d}",
            may_write=True,
            expires_at=now + timedelta(days=REPORT_TOKEN_DAYS),
            only_reports=True,
            is_trusted=may_manage(request.user) and "is_trusted" in request.POST,
        )
    except SpecError as error:
        messages.error(request, f"No token was created: {error}.")
        return redirect("account")
    context = {"new_token": token, "secret": secret, "portal_address": portal_address(request)}
    return render(request, "analysis/report_token.html", context)


@login_required_only
@require_POST
def token_revoke_view(request: HttpRequest, token_id: int) -> HttpResponseRedirect:
    if token_revoke(token_id=token_id, by=signed_in_user(request)):
        messages.success(request, "The token is revoked. Programs that use it are refused from now on.")
    else:
        messages.error(request, "The token was not revoked: it is another person’s, or revoked already.")
    return redirect("account")


class Password(PasswordChangeView):
    template_name = "analysis/account_password.html"
    success_url = reverse_lazy("account")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(
            self.request, "Your password is changed. Your other sessions are logged out; your tokens stay valid."
        )
        return super().form_valid(form)


class Login(LoginView):
    authentication_form = LoginForm
    redirect_authenticated_user = True


def _page(request: HttpRequest, form: TokenForm, *, status: int = 200, **context: Any) -> HttpResponse:
    user = signed_in_user(request)
    trust = Trust.objects.given().filter(token=OuterRef("pk"))
    tokens = ApiToken.objects.filter(owner=user, revoked_at=None).annotate(is_trusted=Exists(trust))[:TOKENS_SHOWN]
    context |= {
        "form": form,
        "roles": sorted(user.groups.values_list("name", flat=True)),
        "quotas": _quota_lines(user),
        "tokens": tokens,
        "tokens_max": TOKENS_PER_PERSON,
        "api_address": request.build_absolute_uri("/api/v1/runs/"),
    }
    return render(request, "analysis/account.html", context, status=status)


def _quota_lines(user: User) -> list[QuotaLine]:
    limits, use = limits_of(user), use_of(user)
    budget = limits.time_budget_max_seconds or settings.RUN_TIME_BUDGET_MAX_SECONDS
    named = Device.objects.filter(pk__in=limits.device_ids or ()).select_related("host")
    devices = "all that are open to you" if limits.device_ids is None else ", ".join(map(str, named))
    return [
        QuotaLine("Runs waiting", use.runs_waiting, _most(limits.runs_waiting_max)),
        QuotaLine("Measurements started in 24 hours", use.runs_today, _most(limits.runs_per_day_max)),
        QuotaLine("Longest time budget", None, duration(min(budget, settings.RUN_TIME_BUDGET_MAX_SECONDS))),
        QuotaLine("Devices", None, devices),
    ]


def _most(limit: int | None) -> str:
    return "no limit" if limit is None else f"of {limit:,}"


urlpatterns = [
    path("login/", Login.as_view(), name="login"),
    path("logout/", login_required_only(LogoutView.as_view()), name="logout"),
    path("account/", account, name="account"),
    path("account/password/", login_required_only(Password.as_view()), name="account_password"),
    path("account/tokens/", token_create_view, name="account_token_create"),
    path("account/tokens/report/", report_token_create, name="report_token_create"),
    path("account/tokens/<int:token_id>/revoke/", token_revoke_view, name="account_token_revoke"),
]
