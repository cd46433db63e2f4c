"""News: hosts that may receive them although they are private, people's subscriptions, deliveries."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from analysis.admin.lists import Managed, ReadOnly
from analysis.models import AllowedHost, Delivery, DeliveryAttempt, Subscription
from analysis.news.subscriptions import subscription_delete


@admin.register(AllowedHost)
class AllowedHostAdmin(Managed):
    list_display = ("host", "note", "added_at")
    search_fields = ("host", "note")


@admin.register(Subscription)
class SubscriptionAdmin(ReadOnly):
    """People's subscriptions; those of people who left can be deleted. No URL is shown: Slack's holds a secret."""

    may = ("delete",)
    list_display = ("name", "owner", "channel", "created_at", "failing_since", "disabled_at")
    list_filter = ("channel",)
    list_select_related = ("owner",)
    search_fields = ("name", "owner__username")
    ordering = ("-id",)
    sortable_by = ()
    fields = (*list_display, "kinds", "scope", "view", "disabled_because")

    def delete_model(self, request: HttpRequest, obj: Subscription) -> None:
        subscription_delete(subscription=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Subscription]) -> None:
        for subscription in queryset:
            subscription_delete(subscription=subscription)


class AttemptInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs alone
    model = DeliveryAttempt
    fields = readonly_fields = ("number", "at", "is_delivered", "status", "seconds", "reason")
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Delivery | None = None) -> bool:
        return False


@admin.register(Delivery)
class DeliveryAdmin(ReadOnly):
    list_display = ("delivery_id", "event", "subscription", "state", "attempts_made", "created_at", "ended_at")
    list_filter = ("state",)
    list_select_related = ("event", "subscription")
    ordering = ("-id",)
    sortable_by = ()
    fields = (*list_display, "due_at", "body")
    inlines = (AttemptInline,)
