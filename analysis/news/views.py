"""The page "Notifications" of a person's account: their subscriptions, the form of one, and the log of each."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from analysis.accounts.middleware import for_readers
from analysis.http.setting_fields import offer
from analysis.models import Channel, Delivery, SavedView, Subscription
from analysis.models.annotations import NAME_LENGTH
from analysis.models.news import CHOSEN_KINDS, ENDS_OF_RUNS, URL_LENGTH
from analysis.news import subscriptions as services
from analysis.news.deliver import is_sender_away
from analysis.news.post import mail_is_configured
from analysis.news.subscriptions import Wish
from analysis.permissions import signed_in_user
from engine.errors import SpecError

_MY_RUNS = ("", "my runs")


class SubscriptionForm(forms.Form):
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


DELIVERIES_SHOWN = 50


@for_readers
@never_cache
@require_safe
def notifications(request: HttpRequest) -> HttpResponse:
    return _list(request, SubscriptionForm(owner=signed_in_user(request)))


@for_readers
@never_cache
@require_POST
def subscription_create(request: HttpRequest) -> HttpResponse:
    """Create a subscription. Only this response shows the secret of a webhook."""
    user = signed_in_user(request)
    form = SubscriptionForm(request.POST, owner=user)
    if form.is_valid():
        try:
            subscription, secret = services.subscription_create(owner=user, wish=form.wish)
        except SpecError as error:
            _add_error(form, error)
        else:
            return _detail(request, subscription, _filled(subscription), secret=secret, is_new=True)
    return _list(request, form, status=422)


@for_readers
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def subscription(request: HttpRequest, subscription_id: int) -> HttpResponse:
    row = _own(request, subscription_id)
    if request.method != "POST":
        return _detail(request, row, _filled(row))
    form = SubscriptionForm(request.POST, owner=row.owner, subscription=row)
    if form.is_valid():
        try:
            services.subscription_change(subscription=row, wish=form.wish)
        except SpecError as error:
            _add_error(form, error)
        else:
            messages.success(request, "Saved.")
            return redirect("subscription", row.pk)
    return _detail(request, row, form, status=422)


@for_readers
@require_POST
def subscription_test(request: HttpRequest, subscription_id: int) -> HttpResponseRedirect:
    row = _own(request, subscription_id)
    try:
        services.subscription_test(subscription=row)
        messages.success(request, "A test is on its way: the log below shows its outcome within seconds.")
    except SpecError as error:
        messages.error(request, f"No test was sent: the {error.field} {error.reason}.")
    return redirect("subscription", row.pk)


@for_readers
@never_cache
@require_POST
def subscription_rotate(request: HttpRequest, subscription_id: int) -> HttpResponse:
    """Make a new secret. Only this response shows it."""
    row = _own(request, subscription_id)
    try:
        secret = services.subscription_rotate(subscription=row)
    except SpecError as error:
        messages.error(request, f"There is no new secret: {error.reason}.")
        return redirect("subscription", row.pk)
    return _detail(request, row, _filled(row), secret=secret)


@for_readers
@require_POST
def subscription_delete(request: HttpRequest, subscription_id: int) -> HttpResponseRedirect:
    services.subscription_delete(subscription=_own(request, subscription_id))
    messages.success(request, "The notifications are deleted. What was on its way is not sent any more.")
    return redirect("notifications")


def _own(request: HttpRequest, subscription_id: int) -> Subscription:
    own = Subscription.objects.filter(owner=signed_in_user(request)).select_related("owner", "view")
    return get_object_or_404(own, pk=subscription_id)


def _filled(row: Subscription) -> SubscriptionForm:
    return SubscriptionForm(owner=row.owner, subscription=row)


def _list(request: HttpRequest, form: SubscriptionForm, status: int = 200) -> HttpResponse:
    rows = Subscription.objects.filter(owner=signed_in_user(request)).select_related("view")
    context = {
        "subscriptions": rows,
        "subscriptions_max": services.SUBSCRIPTIONS_PER_PERSON,
        "form": form,
        "mail_is_configured": mail_is_configured(),
        "sender_is_away": is_sender_away(),
    }
    return render(request, "analysis/notifications.html", context, status=status)


def _detail(
    request: HttpRequest, row: Subscription, form: SubscriptionForm, *, status: int = 200, **more: Any
) -> HttpResponse:
    deliveries = Delivery.objects.filter(subscription=row).select_related("event").prefetch_related("attempts")
    context = {"subscription": row, "form": form, "deliveries": deliveries[:DELIVERIES_SHOWN], **more}
    context["sender_is_away"] = is_sender_away()
    return render(request, "analysis/subscription.html", context, status=status)


def _add_error(form: SubscriptionForm, error: SpecError) -> None:
    form.add_error(error.field if error.field in form.fields else None, error.reason)


_ONE = "account/notifications/<int:subscription_id>/"
urlpatterns = [
    path("account/notifications/", notifications, name="notifications"),
    path("account/notifications/new/", subscription_create, name="subscription_create"),
    path(_ONE, subscription, name="subscription"),
    path(f"{_ONE}test/", subscription_test, name="subscription_test"),
    path(f"{_ONE}secret/", subscription_rotate, name="subscription_rotate"),
    path(f"{_ONE}delete/", subscription_delete, name="subscription_delete"),
]
