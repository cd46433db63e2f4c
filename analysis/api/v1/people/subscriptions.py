"""Subscriptions to news: webhooks, Slack, e-mail; their test, their secret, the log of their deliveries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import DestroyModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.permissions import MayChangeOwn
from analysis.api.v1.base.strict_input import StrictBody, StrictText, validated
from analysis.api.v1.base.views import NO_STORE, Resource
from analysis.http.problem_details import bad_field
from analysis.http.query_string import LARGEST_ID
from analysis.models import Channel, Delivery, DeliveryAttempt, SavedView, Scope, Subscription
from analysis.models.annotations import NAME_LENGTH
from analysis.models.news import CHOSEN_KINDS, URL_LENGTH
from analysis.news import subscriptions as services
from analysis.news.subscriptions import Wish
from analysis.permissions import signed_in_user

_CHOSEN = [(kind.value, kind.label) for kind in CHOSEN_KINDS]


class SubscriptionSerializer(serializers.ModelSerializer[Subscription]):
    """A subscription, without the secret of a webhook, which is not stored."""

    kinds = serializers.ListField(child=serializers.ChoiceField(_CHOSEN))
    view = serializers.IntegerField(source="view_id", allow_null=True, help_text="Saved view; null: one's own runs.")

    class Meta:
        model = Subscription
        fields: tuple[str, ...] = (
            *("id", "name", "channel", "url", "kinds", "scope", "view", "created_at", "rotated_at"),
            *("failing_since", "disabled_at", "disabled_because"),
        )


class NewSubscriptionSerializer(SubscriptionSerializer):
    """A subscription with the secret of its webhook. No other response contains it, except that of a new secret."""

    secret = serializers.CharField(help_text="Signs the deliveries of a webhook; else empty.")

    class Meta(SubscriptionSerializer.Meta):
        fields = (*SubscriptionSerializer.Meta.fields, "secret")


class SubscriptionBodySerializer(StrictBody):
    """A subscription to create."""

    name = StrictText(max_length=NAME_LENGTH)
    channel = serializers.ChoiceField(Channel.choices)
    kinds = serializers.ListField(child=serializers.ChoiceField(_CHOSEN), allow_empty=False, max_length=len(_CHOSEN))
    url = StrictText(max_length=URL_LENGTH, default="", allow_blank=True, help_text="Empty for email.")
    view = serializers.IntegerField(
        default=None, allow_null=True, min_value=1, max_value=LARGEST_ID, help_text="Saved view; null: one's own runs."
    )


class SubscriptionChangeSerializer(SubscriptionBodySerializer):
    """What to change of a subscription; what is left out stays. Any change enables a disabled one again."""

    channel = None  # type: ignore[assignment]  # so a serializer leaves one of its base out


class SecretSerializer(serializers.Serializer[Any]):
    """A new secret."""

    secret = serializers.CharField()


class DeliveryAttemptSerializer(serializers.ModelSerializer[DeliveryAttempt]):
    """One attempt. `status` is the receiver's; null without a response, and for mail."""

    class Meta:
        model = DeliveryAttempt
        fields = ("number", "at", "is_delivered", "status", "seconds", "reason")


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One event on its way to one subscription, with every attempt."""

    event = serializers.CharField(source="event.kind")
    run = serializers.IntegerField(source="event.run_id", allow_null=True)
    attempts = DeliveryAttemptSerializer(many=True, source="attempts.all")

    class Meta:
        model = Delivery
        fields = ("id", "delivery_id", "event", "run", "state", "created_at", "due_at", "ended_at", "attempts")


@extend_schema_view(
    retrieve=extend_schema(description="One subscription of one's own."),
    destroy=extend_schema(description="Delete a subscription with its log. What was on its way is not sent any more."),
)
class Subscriptions(Resource[Subscription], DestroyModelMixin):
    """The person's own subscriptions, newest first."""

    permission_classes = (MayChangeOwn,)
    serializer_class = SubscriptionSerializer
    queryset = Subscription.objects.none()

    def get_queryset(self) -> QuerySet[Subscription]:
        return Subscription.objects.filter(owner=signed_in_user(self.request)).select_related("owner", "view")

    @extend_schema(request=SubscriptionBodySerializer, responses={201: NewSubscriptionSerializer})
    def create(self, request: Request) -> Response:
        """Create a subscription. The response alone shows the secret of a webhook."""
        user, values = signed_in_user(request), validated(SubscriptionBodySerializer, request.data)
        wish = Wish(**{**values, "view": _view_of(values["view"], request)})
        subscription, secret = services.subscription_create(owner=user, wish=wish)
        return self.created(subscription, secret=secret)

    @extend_schema(
        operation_id="subscriptions_change",
        request=SubscriptionChangeSerializer(partial=True),
        responses=SubscriptionSerializer,
    )
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a subscription, and enable it again if it was disabled. Its channel and secret stay."""
        row = self.get_object()
        changes = dict(validated(SubscriptionChangeSerializer, request.data, partial=True))
        if "view" in changes:
            changes["view"] = _view_of(changes["view"], request)
        elif row.scope == Scope.VIEW and row.view is None:  # must not widen to all runs of the person by itself
            raise bad_field("view", "was deleted: name another one, or null for your own runs")
        wish = Wish(row.name, row.channel, row.kinds, row.url, row.view)
        services.subscription_change(subscription=row, wish=replace(wish, **changes))
        return Response(self.get_serializer(row).data)

    def perform_destroy(self, instance: Subscription) -> None:
        services.subscription_delete(subscription=instance)

    @extend_schema(request=None, responses={202: None})
    @action(detail=True, methods=["post"])
    def test(self, request: Request, pk: int) -> Response:
        """Send a test the way all news go. The log of deliveries shows its outcome."""
        services.subscription_test(subscription=self.get_object())
        return Response(status=202, headers={"Location": self.reverse_action("deliveries", args=[pk])})

    @extend_schema(request=None, responses=SecretSerializer)
    @action(detail=True, methods=["post"])
    def secret(self, request: Request, pk: int) -> Response:
        """Make a new secret, which this response alone shows. For a day the former one signs too."""
        return Response({"secret": services.subscription_rotate(subscription=self.get_object())}, headers=NO_STORE)

    @extend_schema(responses=DeliverySerializer(many=True))
    @action(detail=True)
    def deliveries(self, request: Request, pk: int) -> Response:
        """List the deliveries of one subscription with all their attempts, newest first."""
        rows: Any = Delivery.objects.filter(subscription=self.get_object())
        page: Any = self.paginate_queryset(rows.select_related("event").prefetch_related("attempts"))
        return self.get_paginated_response(DeliverySerializer(page, many=True).data)


def _view_of(number: int | None, request: Request) -> SavedView | None:
    if number is None:
        return None
    view = SavedView.objects.filter(Q(owner=signed_in_user(request)) | Q(is_shared=True), pk=number).first()
    if view is None:
        raise bad_field("view", "must be the id of a saved view of yours, or of a shared one")
    return view
