"""Share links: which run is shown to people who have the address, by whom it was shared, and until when."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from analysis.admin.lists import RunChildAdmin
from analysis.models import ShareLink
from analysis.runs.marks.share_links import share_link_withdraw


@admin.register(ShareLink)
class ShareLinkAdmin(RunChildAdmin[ShareLink]):
    """Links, to find and withdraw. They are created on the page of a run."""

    list_display = ("prefix", "run_link", "created_by", "created_at", "ends_at", "withdrawn_at")
    list_select_related = ("created_by",)
    search_fields = ("prefix", "created_by__username")
    sortable_by = ()
    fields = list_display
    actions = ("withdraw",)

    @admin.action(description="Withdraw: answer “not found” from now on", permissions=["view"])
    def withdraw(self, request: HttpRequest, links: QuerySet[ShareLink]) -> None:
        self.end_each(request, links, lambda pk, by: share_link_withdraw(link_id=pk, by=by), "withdrawn")
