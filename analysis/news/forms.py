"""The form of a subscription. `subscriptions` validates; the form shows its errors."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q

from analysis.http.setting_fields import offer
from analysis.models import Channel, SavedView, Subscription
from analysis.models.annotations import NAME_LENGTH
from analysis.models.news import CHOSEN_KINDS, ENDS_OF_RUNS, URL_LENGTH
from analysis.news.post import mail_is_configured
from analysis.news.subscriptions import Wish

_MY_RUNS = ("", "my runs")


class SubscriptionForm(forms.Form):
    """Where news go, which, and of which runs."""

    name = forms.CharField(
        max_length=NAME_LENGTH, help_text="For you alone.", widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    channel = forms.ChoiceField(label="How")
    url = forms.CharField(
        label="URL",
        required=False,
        max_length=URL_LENGTH,
        help_text="https://… of the receiver. Empty for e-mail.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "url"}),
    )
    view = forms.ChoiceField(label="Runs", required=False, help_text="A saved view of the history: runs of all people.")
    kinds = forms.MultipleChoiceField(
        label="Notify me when",
        choices=[(kind.value, kind.label) for kind in CHOSEN_KINDS],
        initial=[kind.value for kind in ENDS_OF_RUNS],
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, owner: User, subscription: Subscription | None = None, **kwargs: Any) -> None:
        if subscription is not None:
            kwargs["initial"] = {
                **{name: getattr(subscription, name) for name in ("name", "channel", "url", "kinds")},
                "view": str(subscription.view_id or ""),
            }
        super().__init__(*args, **kwargs)
        self._views = {
            str(view.pk): view
            for view in SavedView.objects.filter(Q(owner=owner) | Q(is_shared=True)).order_by("name", "pk")
        }
        offer(self, "view", [_MY_RUNS, *((key, view.name) for key, view in self._views.items())])
        channels = [channel for channel in Channel if channel != Channel.EMAIL or mail_is_configured()]
        offered = [Channel(subscription.channel)] if subscription is not None else channels
        offer(self, "channel", [(channel.value, channel.label) for channel in offered])

    @property
    def wish(self) -> Wish:
        values = self.cleaned_data
        view = self._views.get(values["view"])
        return Wish(values["name"], values["channel"], values["kinds"], values["url"].strip(), view)
