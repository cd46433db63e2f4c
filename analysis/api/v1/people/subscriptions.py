"""Subscriptions to news: webhooks, Slack, e-mail; their test, their secret, the log of their deliveries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import GenericAPIView, RetrieveAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from analysis.api.permissions import MayRead
from analysis.api.v1.base.paging import PagedList
from analysis.api.v1.base.serializer_bases import StrictBody
from analysis.api.v1.base.strict_input import StrictText, validated
from analysis.api.v1.base.strict_view import StrictView
from analysis.http.problem_details import bad_field
from analysis.http.query_string import LARGEST_ID
from analysis.models import ApiToken, Channel, Delivery, DeliveryAttempt, SavedView, Scope, Subscription
from analysis.models.annotations import NAME_LENGTH
from analysis.models.news import CHOSEN_KINDS, URL_LENGTH
from analysis.news import subscriptions as services
from analysis.news.subscriptions import Wish
from analysis.permissions import signed_in_user

_CHOSEN = [(kind.value, kind.label) for kind in CHOSEN_KINDS]


class MayReadAndChangeOwn(MayRead):
    """Allows every person who may read to have subscriptions; a token that only reads changes none."""

    def has_permission(self, request: Any, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        self.message, self.code = "This token can only read; use one that may write (mm_w_...)", "token_only_reads"
        only_reads = isinstance(request.auth, ApiToken) and not request.auth.may_write
        return request.method in SAFE_METHODS or not only_reads


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

    secret = serializers.SerializerMethodField(help_text="Signs the deliveries of a webhook; else empty.")

    class Meta(SubscriptionSerializer.Meta):
        fields = (*SubscriptionSerializer.Meta.fields, "secret")

    def get_secret(self, subscription: Subscription) -> str:
        return str(self.context["secret"])


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


class _Subscriptions(StrictView, GenericAPIView[Any]):
    """Common base: a person's own subscriptions, and nobody else's."""

    permission_classes = (MayReadAndChangeOwn,)
    serializer_class: Any = SubscriptionSerializer
    queryset: Any = Subscription.objects.none()

    def get_queryset(self) -> QuerySet[Any]:
        return Subscription.objects.filter(owner=signed_in_user(self.request)).select_related("owner", "view")

    def own(self, pk: int) -> Subscription:
        found: Subscription = get_object_or_404(_Subscriptions.get_queryset(self), pk=pk)
        return found


class SubscriptionList(_Subscriptions, PagedList[Subscription]):
    """The person's own subscriptions, newest first."""

    @extend_schema(request=SubscriptionBodySerializer, responses={201: NewSubscriptionSerializer})
    def post(self, request: Request) -> Response:
        """Create a subscription. The response alone shows the secret of a webhook."""
        user, values = signed_in_user(request), validated(SubscriptionBodySerializer, request.data)
        wish = Wish(**{**values, "view": _view_of(values["view"], request)})
        subscription, secret = services.subscription_create(owner=user, wish=wish)
        location = reverse("api-subscription", args=[subscription.pk], request=request)
        answer = NewSubscriptionSerializer(subscription, context={"secret": secret}).data
        return Response(answer, status=201, headers={"Location": location, "Cache-Control": "no-store"})


class SubscriptionDetail(_Subscriptions, RetrieveAPIView[Subscription]):
    """One subscription of one's own."""

    @extend_schema(
        operation_id="subscriptions_change",
        request=SubscriptionChangeSerializer(partial=True),
        responses=SubscriptionSerializer,
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change a subscription, and enable it again if it was disabled. Its channel and secret stay."""
        row = self.own(pk)
        changes = dict(validated(SubscriptionChangeSerializer, request.data, partial=True))
        if "view" in changes:
            changes["view"] = _view_of(changes["view"], request)
        elif row.scope == Scope.VIEW and row.view is None:  # must not widen to all runs of the person by itself
            raise bad_field("view", "was deleted: name another one, or null for your own runs")
        wish = Wish(row.name, row.channel, row.kinds, row.url, row.view)
        services.subscription_change(subscription=row, wish=replace(wish, **changes))
        return Response(self.get_serializer(row).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a subscription with its log. What was on its way is not sent any more."""
        services.subscription_delete(subscription=self.own(pk))
        return Response(status=204)


class SubscriptionTest(_Subscriptions):
    """A test of a subscription."""

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request, pk: int) -> Response:
        """Send a test the way all news go. The log of deliveries shows its outcome."""
        services.subscription_test(subscription=self.own(pk))
        location = reverse("api-subscription-deliveries", args=[pk], request=request)
        return Response(status=202, headers={"Location": location})


class SubscriptionSecret(_Subscriptions):
    """The secret of a webhook."""

    @extend_schema(request=None, responses=SecretSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Make a new secret, which this response alone shows. For a day the former one signs too."""
        secret = services.subscription_rotate(subscription=self.own(pk))
        return Response({"secret": secret}, headers={"Cache-Control": "no-store"})


class SubscriptionDeliveries(_Subscriptions, PagedList[Delivery]):
    """The deliveries of one subscription with all their attempts, newest first."""

    serializer_class = DeliverySerializer
    queryset = Delivery.objects.none()

    def get_queryset(self) -> QuerySet[Delivery]:
        deliveries = Delivery.objects.filter(subscription=self.own(self.kwargs["pk"]))
        return deliveries.select_related("event").prefetch_related("attempts")


def _view_of(number: int | None, request: Request) -> SavedView | None:
    if number is None:
        return None
    view = SavedView.objects.filter(Q(owner=signed_in_user(request)) | Q(is_shared=True), pk=number).first()
    if view is None:
        raise bad_field("view", "must be the id of a saved view of yours, or of a shared one")
    return view
