"""Forms of a person's own account: to sign in, and to create a token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.core.validators import MaxLengthValidator
from django.utils import timezone

from analysis.http.setting_fields import offer
from analysis.models.accounts import TOKEN_NAME_LENGTH
from analysis.permissions import may_manage, may_start

_READS, _WRITES, _REPORTS = "read", "write", "report"
_DAYS = {"30": "30 days", "90": "90 days", "365": "a year", "": "until it is revoked"}


class LoginForm(AuthenticationForm):
    """Django's form with a check of the name's length, which Django omits: the count of failures stores the name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].validators.append(MaxLengthValidator(User._meta.get_field("username").max_length))


class TokenForm(forms.Form):
    """The purpose, the rights and the expiry of a new token."""

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
