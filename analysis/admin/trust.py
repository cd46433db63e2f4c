"""The senders of reported runs: tokens and hosts that GPU managers trust, or did."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from analysis.admin.lists import Managed, ended, on_ticked
from analysis.admin.runs import PartOfRun
from analysis.http.query_string import is_row_id
from analysis.models import Report, Trust
from analysis.permissions import signed_in_user
from analysis.runs.services import trust_give, trust_revoke


@admin.register(Report)
class ReportAdmin(PartOfRun):
    """How each reported run came here. The moment is the sender's."""

    list_display = ("id", "run_link", "run_key", "token", "engine_version", "started_at", "events_received")
    fields = (*list_display[1:], "document_sha256")
    list_select_related = ("token",)


@admin.register(Trust)
class TrustAdmin(Managed):
    """Trust is given and revoked, never edited: the rows say who decided what, and when."""

    may = ("add",)
    list_display = ("subject", "owner", "trusted_by", "trusted_at", "revoked_by", "revoked_at")
    list_select_related = ("token__owner", "trusted_by", "revoked_by")
    search_fields = ("host", "token__name", "token__owner__username")
    search_help_text = "A host, a token's name or its owner."
    autocomplete_fields = ("token",)
    fields = ("token", "host")
    actions = ("revoke",)
    revoke = on_ticked(
        "Revoke: their runs count no longer", ended("revoked", lambda pk, by: trust_revoke(trust_id=pk, by=by))
    )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Offer the token that reported the run of `?run=`; where it came with a password, its host."""
        number = request.GET.get("run", "")
        report = Report.objects.select_related("run").filter(run=int(number)).first() if is_row_id(number) else None
        if report is None:
            return {}
        return {"token": report.token_id} if report.token_id else {"host": report.run.reported_from}

    def save_model(self, request: HttpRequest, obj: Trust, form: ModelForm[Trust], change: bool) -> None:
        obj.pk = trust_give(by=signed_in_user(request), token=obj.token, host=obj.host).pk

    @admin.display(description="trusted")
    def subject(self, trust: Trust) -> str:
        return f"host {trust.host}" if trust.host else f"token {trust.token}"

    @admin.display(description="owner of the token")
    def owner(self, trust: Trust) -> str | None:
        return trust.token.owner.get_username() if trust.token else None
