"""One event -> a delivery for each interested subscription, in the transaction that marks the event as dispatched."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models.functions import Now
from django.http import QueryDict

from analysis.lists.runs.query import parse_query
from analysis.models import Delivery, NewsEvent, NewsKind, Run, Scope, Subscription
from analysis.news.decide import news_after
from analysis.news.messages import UNREADABLE, body_of
from analysis.permissions import may_manage, may_read

logger = logging.getLogger(__name__)


def dispatch_waiting(limit: int = 100) -> int:
    """Dispatch the oldest events that wait. Returns how many were dispatched."""
    waiting = NewsEvent.objects.filter(dispatched_at=None).order_by("id").values_list("pk", flat=True)[:limit]
    return sum(_dispatch(event_id) for event_id in list(waiting))


def deliver_to(event: NewsEvent, run: Run | None, subscriptions: list[Subscription]) -> None:
    body = body_of(event, run) if subscriptions else {}
    rows = [Delivery(event=event, subscription=each, body=body, due_at=Now()) for each in subscriptions]
    Delivery.objects.bulk_create(rows, ignore_conflicts=True)


def wants(subscription: Subscription, event: NewsEvent, run: Run | None) -> bool:
    if event.kind == NewsKind.DISABLED:
        return bool(subscription.owner_id == event.details["owner"])
    if event.kind not in subscription.kinds or not subscription.owner.is_active or not may_read(subscription.owner):
        return False
    if event.kind == NewsKind.SILENT:
        return True
    if event.kind == NewsKind.WEEK:
        return may_manage(subscription.owner)
    if run is None:
        return False
    if subscription.scope == Scope.MINE:
        return run.requested_by_id == subscription.owner_id
    if subscription.view is None:  # deleted meanwhile
        return False
    query = parse_query(QueryDict(subscription.view.query))
    # a view that the history would refuse shows no runs there either
    return not query.problems and query.qs.filter(pk=run.pk).exists()


def _dispatch(event_id: int) -> bool:
    with transaction.atomic():
        # one of several senders finds the row unmarked; the others wait for its transaction
        if not NewsEvent.objects.filter(pk=event_id, dispatched_at=None).update(dispatched_at=Now()):
            return False
        event = NewsEvent.objects.get(pk=event_id)
        run = None if event.run_id is None else Run.objects.with_places().filter(pk=event.run_id).first()
        if event.run_id is not None and run is None:
            return True  # deleted meanwhile
        if run is not None and event.kind == NewsKind.FINISHED:
            NewsEvent.objects.bulk_create(_following(run), ignore_conflicts=True)
        # a subscription hears of nothing that happened before it
        enabled = Subscription.objects.filter(disabled_at=None, created_at__lte=event.created_at)
        found = enabled.select_related("owner", "view")
        deliver_to(event, run, [each for each in found if wants(each, event, run)])
    return True


def _following(run: Run) -> list[NewsEvent]:
    """Return what follows from the end of this run. A result that cannot be read must not stop all other news."""
    try:
        return news_after(run)
    except UNREADABLE:
        logger.exception("what follows from run %s cannot be decided", run.pk)
        return []
