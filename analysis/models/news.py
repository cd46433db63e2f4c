"""News: what happened, who wants to hear of it, and every attempt to deliver it.

NewsEvent      what happened; written in the transaction that made it happen (an outbox)
Subscription   a person's wish: which news, of which runs, to which address
Delivery       one event for one subscription, until received or given up
DeliveryAttempt   one request or mail, with its outcome
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from analysis.models.annotations import NAME_LENGTH, SavedView

_PORT = r"(6553[0-5]|655[0-2]\d|65[0-4]\d{2}|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})"
_HOST_AND_PORT = rf"^((\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:{_PORT})?|[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*)\Z"
URL_LENGTH, REASON_LENGTH, KEY_LENGTH, HOST_LENGTH = 500, 300, 120, 253


class NewsKind(models.TextChoices):
    """The events that are news. Their names are those of the receivers' `event`."""

    FINISHED = "run.finished", "A run finished"
    FAILED = "run.failed", "A run failed"
    CANCELLED = "run.cancelled", "A run was cancelled"
    INTERRUPTED = "run.interrupted", "A run was interrupted"
    CONTRADICTED = "estimate.contradicted", "A measurement contradicts its estimate"
    STEP = "trend.step", "A trend stepped"
    SILENT = "device.silent", "A device went silent"
    WEEK = "fleet.week", "What the lab lost last week (for GPU managers)"
    DISABLED = "subscription.disabled", "A subscription was disabled"
    TEST = "test", "A test"


ENDS_OF_RUNS = (NewsKind.FINISHED, NewsKind.FAILED, NewsKind.CANCELLED, NewsKind.INTERRUPTED)
CHOSEN_KINDS = (*ENDS_OF_RUNS, NewsKind.CONTRADICTED, NewsKind.STEP, NewsKind.SILENT, NewsKind.WEEK)
"""The kinds that a subscription can choose. A test is sent on request, and that one of a person's subscriptions was
disabled goes to their others.
"""


class NewsEvent(models.Model):
    """One event. `key` names what happened: the same event is stored once, however often it is reported."""

    kind = models.CharField(max_length=24, choices=NewsKind.choices)
    key = models.CharField(max_length=KEY_LENGTH, unique=True)
    run = models.ForeignKey("analysis.Run", null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    device = models.ForeignKey("analysis.Device", null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    details = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    dispatched_at = models.DateTimeField(
        null=True, blank=True, help_text="When its deliveries were stored. Empty: not yet."
    )

    class Meta:
        ordering = ("id",)
        indexes = (
            models.Index(fields=("id",), condition=models.Q(dispatched_at=None), name="news_waiting"),
            models.Index(fields=("created_at",), name="news_by_age"),
        )

    def __str__(self) -> str:
        return self.key


class Channel(models.TextChoices):
    WEBHOOK = "webhook", "Webhook, signed JSON"
    SLACK = "slack", "Slack or compatible"
    EMAIL = "email", "E-mail to your address"


class Scope(models.TextChoices):
    MINE = "mine", "My runs"
    VIEW = "view", "The runs of a saved view"


class Subscription(models.Model):
    """Where one person wants news delivered.

    The secret with which a webhook is signed is not stored: `analysis.news.signing` derives it from SECRET_KEY, `key`
    and `generation`, so neither the database nor a copy of it is enough to forge a signature. A rotation increments
    `generation`; for a day the former secret signs too.

    A scope `view` whose view was deleted matches no run: it must not widen to all of them.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="subscriptions")
    name = models.CharField(max_length=NAME_LENGTH)
    channel = models.CharField(max_length=10, choices=Channel.choices)
    url = models.CharField(max_length=URL_LENGTH, blank=True, default="")
    kinds = models.JSONField(default=list, help_text="The chosen kinds of news.")
    scope = models.CharField(max_length=4, choices=Scope.choices, default=Scope.MINE)
    view = models.ForeignKey(SavedView, null=True, blank=True, on_delete=models.SET_NULL, related_name="subscriptions")
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    generation = models.PositiveIntegerField(default=1, editable=False)
    rotated_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    failing_since = models.DateTimeField(
        null=True, blank=True, help_text="When the first attempt failed since the last delivery. Empty: none did."
    )
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_because = models.CharField(max_length=REASON_LENGTH, blank=True, default="")

    class Meta:
        ordering = ("name", "id")
        constraints = (models.UniqueConstraint(fields=("owner", "name"), name="subscription_once_per_name"),)

    def __str__(self) -> str:
        return self.name

    @property
    def is_signed(self) -> bool:
        return self.channel == Channel.WEBHOOK


class DeliveryState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    GIVEN_UP = "given_up", "Given up"


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def waiting(self) -> DeliveryQuerySet:
        """Keep what a sender has to send, now or at a later attempt: a disabled subscription gets nothing."""
        return self.filter(state=DeliveryState.WAITING, subscription__disabled_at=None)


class Delivery(models.Model):
    """One event for one subscription. Its `delivery_id` is the same in all attempts, so receivers can deduplicate.

    A sender that takes it moves `due_at` past the longest attempt before it sends: if the sender is killed, another
    one finds the delivery due again. So the guarantee is at-least-once.
    """

    event = models.ForeignKey(NewsEvent, on_delete=models.CASCADE, related_name="deliveries")
    subscription = models.ForeignKey(Subscription, on_delete=models.CASCADE, related_name="deliveries")
    delivery_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    body = models.JSONField(help_text="What is sent, written once: every attempt sends the same.")
    attempts_made = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "deliveries"
        constraints = (
            models.UniqueConstraint(fields=("event", "subscription"), name="delivery_once_per_subscription"),
        )
        indexes = (models.Index(fields=("due_at",), condition=models.Q(state="waiting"), name="delivery_due"),)

    def __str__(self) -> str:
        return str(self.delivery_id)


class DeliveryAttempt(models.Model):
    """One attempt and its outcome. `status` is the response's; empty where there was none, or for a mail."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    at = models.DateTimeField(auto_now_add=True)
    is_delivered = models.BooleanField()
    status = models.PositiveIntegerField(null=True, blank=True)
    seconds = models.FloatField()
    reason = models.CharField(max_length=REASON_LENGTH, blank=True, default="")

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.delivery_id}"


class AllowedHost(models.Model):
    """A host to which news may go although its address is private, or its URL is http. GPU managers add it."""

    host = models.CharField(
        max_length=HOST_LENGTH,
        unique=True,
        validators=[RegexValidator(_HOST_AND_PORT, "A host or address in lower case, with :port unless 443 or 80.")],
        help_text="As in the URL, in lower case, with its port: chat.lab.internal:8443. Without one: 443, of http 80.",
    )
    note = models.CharField(max_length=200, blank=True, default="")
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("host",)

    def __str__(self) -> str:
        return self.host
