"""Every page of the panel answers, in few statements, however many rows there are, and counts none of them."""

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from analysis.accounts.tokens import token_create
from analysis.audit.record import record_many
from analysis.models import (
    AllowedHost,
    Attempt,
    Device,
    GpuPrice,
    Quota,
    Run,
    RunLog,
    SavedView,
    ShareLink,
    Tag,
    TrendAcknowledgement,
)
from analysis.news.subscriptions import Wish, subscription_create, subscription_test
from analysis.runs import services
from analysis.runs.services import LogLine
from engine.estimate.gpus import gpus
from tests.factories import make_card, make_claimed_run, make_measured_run, make_probe, make_user
from tests.factories.reports import SendingClient, make_run_key

pytestmark = pytest.mark.django_db
ROWS = 30
QUERIES_MAX = 12
LARGE = ("run", "attempt", "measurement", "runlog", "auditentry", "apitoken")
COUNTING = tuple(f'SELECT COUNT(*) AS "__count" FROM "analysis_{name}"' for name in LARGE)


@pytest.fixture
def thirty_of_each(root: User) -> None:
    cards = [make_card(number, host=f"host{number}", uuid=f"GPU-{number}") for number in range(ROWS)]
    people = [make_user(f"person{number}") for number in range(ROWS)]
    fill_runs(cards, people)
    fill_probes(cards[0])
    fill_links(people)
    fill_news(people)
    for person in people:
        Group.objects.create(name=f"group of {person}")
        Quota.objects.create(user=person, runs_waiting_max=3).devices.set(cards[:3])
        token_create(owner=person, name="ci", may_write=False, expires_at=None)
        SavedView.objects.create(owner=person, name="mine", query="state=failed")
        services.trust_give(by=root, host=f"node of {person}")
        SendingClient(person).begin(make_run_key())
    for gpu in list(gpus())[:ROWS]:
        GpuPrice.objects.create(gpu=gpu, price_per_hour_usd=1.0, source="invoice", valid_from="2026-11-01")
    cards[0].allowed_users.set(people)
    record_many("run.delete", [("run", str(number)) for number in range(ROWS)])


def fill_runs(cards: list[Device], people: list[User]) -> None:
    """One is really stored as workers do, and the others are like it."""
    run = make_measured_run(cards[0])
    Tag.objects.bulk_create(Tag(name=f"tag{number}") for number in range(ROWS))
    for person, card in zip(people, cards, strict=True):
        run.pk, run.requested_by, run.device = None, person, card
        run.save(force_insert=True)
        attempt = {"owner": "host:1", "started_at": run.started_at, "ended_at": run.finished_at}
        Attempt.objects.create(run=run, number=1, device=card, **attempt)
        TrendAcknowledgement.objects.create(run=run, metric="peak", note="new torch", acknowledged_by=person)


def fill_links(people: list[User]) -> None:
    runs = Run.objects.filter(state="finished")
    for number, (run, person) in enumerate(zip(runs, people, strict=False)):
        ShareLink.objects.create(run=run, created_by=person, prefix=f"link{number}", digest=f"{number}")


def fill_news(people: list[User]) -> None:
    for number, person in enumerate(people):
        host = f"lab-{number}.example"
        AllowedHost.objects.create(host=host)
        wish = Wish("mine", "webhook", ["run.finished"], f"https://{host}/hook")
        subscription, _ = subscription_create(owner=person, wish=wish)
        subscription_test(subscription=subscription)


def fill_probes(card: Device) -> None:
    run = make_claimed_run(card)
    for sequence in range(1, ROWS + 1):
        services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(sequence), sequence=sequence)
    lines = [LogLine("info", f"line {number}") for number in range(ROWS)]
    services.log_add(run_id=run.pk, token=run.token, lines=lines, first_sequence=1)
    assert RunLog.objects.count() == ROWS


def pages(client: Client) -> Iterator[str]:
    yield from (reverse("admin:index"), reverse("admin:queue"))
    request = client.get(reverse("admin:index")).wsgi_request
    for model, panel in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        yield reverse(f"{name}_change", args=[model._base_manager.order_by("-pk").values_list("pk", flat=True)[0]])
        if panel.has_add_permission(request):
            yield reverse(f"{name}_add")


@pytest.mark.slow
def test_no_page_needs_more_than_twelve_statements_or_counts_what_may_be_a_million_rows(root_client, thirty_of_each):
    found = {}
    for url in pages(root_client):
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            assert root_client.get(url).status_code == 200, url
        found[url] = len(queries)
        counted = [each["sql"] for each in queries if each["sql"].startswith(COUNTING)]
        assert not counted or url == reverse("admin:index"), (url, counted)
    assert {url: count for url, count in found.items() if count > QUERIES_MAX} == {}
