"""The part of a run's page that shares it: its links, and the form for a new one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict

from analysis.http.setting_fields import offer
from analysis.models import Run, ShareLink
from analysis.presentation.badge import badge
from analysis.runs.marks.share_links import days_allowed, is_shareable, share_links_of

_DAYS = {1: "a day", 7: "a week", 30: "30 days", 90: "90 days", 365: "a year", None: "until it is withdrawn"}
_USUAL_DAYS = 30


class ShareForm(forms.Form):
    days = forms.ChoiceField(label="Valid for", required=False)

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="id_share_%s")
        allowed = days_allowed()
        offer(self, "days", [("" if each is None else str(each), _DAYS.get(each, f"{each} days")) for each in allowed])
        self.fields["days"].initial = str(_USUAL_DAYS if _USUAL_DAYS in allowed else allowed[0])

    @property
    def number_of_days(self) -> int | None:
        return int(self.cleaned_data["days"]) if self.cleaned_data["days"] else None


def share_context(run: Run, user: User | None) -> dict[str, Any]:
    if user is None or not is_shareable(run):
        return {}
    if not Run.objects.changeable_by(user).filter(pk=run.pk).exists():
        return {}
    links = share_links_of(user).filter(run=run, withdrawn_at=None).select_related("created_by")
    return {"share_form": ShareForm(), "share_links": links}


def new_link_context(run: Run, link: ShareLink, address: str, badge_address: str) -> dict[str, Any]:
    """Return the addresses of a new link, and the Markdown of its badge. Only one response has them."""
    return {
        "new_link": link,
        "share_address": address,
        "badge_address": badge_address,
        "badge_markdown": f"[![{badge(run).label}: {badge(run).text}]({badge_address})]({address})",
    }
