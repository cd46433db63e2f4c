"""The page "Notifications" of a person's account: their subscriptions, and the log of each."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from analysis.accounts.middleware import for_readers
from analysis.models import Delivery, Subscription
from analysis.news import subscriptions as services
from analysis.news.deliver import is_sender_away
from analysis.news.forms import SubscriptionForm
from analysis.news.post import mail_is_configured
from analysis.permissions import signed_in_user
from engine.errors import SpecError

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
        messages.error(request, f"No test was sent: the {error.field} {_text(error)}.")
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
        messages.error(request, f"There is no new secret: {_text(error)}.")
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
    form.add_error(error.field if error.field in form.fields else None, _text(error))


def _text(error: SpecError) -> str:
    return str(error).removeprefix(f"{error.field}: ")
