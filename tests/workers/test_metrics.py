"""What a scraper reads, and who may read it."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from analysis.models import Attempt, Delivery, Host, NewsEvent, Run, Subscription
from analysis.runs.queue.retry_policy import Cause
from analysis.workers.metrics import metrics_text, nearest_rank
from tests.factories import make_card, make_claimed_run, make_host, make_run

pytestmark = pytest.mark.django_db

PATH = "/metrics"


def samples() -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names) -> value; a sample that comes twice is an error."""
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(metrics_text().decode()):
        for sample in family.samples:
            key = (sample.name, *(value for _, value in sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


ALERTS = Path(settings.BASE_DIR, "deploy", "alerts.yml").read_text()


def test_alert_rules_name_only_metrics_that_are_served():
    named = set(re.findall(r"\bmemorymark_\w+", ALERTS))
    assert len(named) > 5
    assert named <= {family.name for family in text_string_to_metric_families(metrics_text().decode())}


def test_alert_rules_name_only_causes_that_attempts_have():
    named = re.findall(r'cause=~"(.+?)"', ALERTS)[0].split("|")
    assert [name for name in named if not any(re.fullmatch(name, cause.value) for cause in Cause)] == []


def ago(seconds: float):
    return timezone.now() - timedelta(seconds=seconds)


def test_an_empty_portal_reports_zeros_and_omits_unknown_figures():
    found = samples()
    assert found["memorymark_runs_queued", "high"] == found["memorymark_runs_running",] == 0
    assert found["memorymark_runs_queued_oldest_seconds",] == 0
    assert not [key for key in found if key[0].startswith("memorymark_device")]
    assert found["memorymark_data_folder_free_bytes",] > 0


def test_waiting_runs_are_counted_by_priority_with_the_age_of_the_oldest():
    card = make_card()
    runs = [make_run(card) for _ in range(3)]
    Run.objects.filter(pk=runs[0].pk).update(priority=Run.Priority.HIGH, created_at=ago(500))
    found = samples()
    assert (found["memorymark_runs_queued", "high"], found["memorymark_runs_queued", "normal"]) == (1, 2)
    assert 500 <= found["memorymark_runs_queued_oldest_seconds",] < 520


def test_a_running_run_is_counted_with_its_age():
    run = make_claimed_run(make_card())
    Run.objects.filter(pk=run.pk).update(started_at=ago(70))
    found = samples()
    assert found["memorymark_runs_running",] == 1
    assert 70 <= found["memorymark_runs_running_oldest_seconds",] < 90


def test_runs_that_ended_in_the_last_hour_have_quantiles_and_older_ones_do_not_count():
    card, now = make_card(), timezone.now()
    for seconds in (10, 20, 30, 40):
        ended = {"state": "finished", "started_at": now - timedelta(seconds=seconds), "finished_at": now}
        Run.objects.filter(pk=make_run(card).pk).update(**ended)
    Run.objects.filter(pk=make_run(card).pk).update(state="finished", started_at=ago(9000), finished_at=ago(7300))
    found = samples()
    assert found["memorymark_runs_ended_last_hour", "finished"] == 4
    seconds = [found["memorymark_run_duration_last_hour_seconds", quantile, "finished"] for quantile in ("0.5", "1")]
    assert seconds == pytest.approx([20, 40])


def test_a_run_cancelled_before_it_started_is_counted_without_a_duration():
    Run.objects.filter(pk=make_run(make_card()).pk).update(state="cancelled", finished_at=timezone.now())
    found = samples()
    assert found["memorymark_runs_ended_last_hour", "cancelled"] == 1
    assert not [key for key in found if "duration" in key[0]]


def test_attempts_of_the_last_day_are_counted_by_cause():
    card = make_card()
    run = make_run(card)
    for number, seconds in enumerate((60, 120, 100_000), start=1):
        told = {"outcome": "interrupted", "cause": "owner_died", "started_at": ago(seconds)}
        Attempt.objects.create(run=run, number=number, device=card, owner="w", **told)
    assert samples()["memorymark_attempts_last_day", "owner_died", "interrupted"] == 2


def test_news_are_overdue_from_the_moment_they_are_due(alice):
    mine = Subscription.objects.create(owner=alice, name="mine", channel="email", kinds=["run.finished"])
    NewsEvent.objects.create(kind="run.finished", key="1", dispatched_at=ago(900))
    found = samples()
    assert (found["memorymark_deliveries_waiting",], found["memorymark_news_overdue_seconds",]) == (0, 0)
    Delivery.objects.create(subscription=mine, event=NewsEvent.objects.get(), body={}, due_at=ago(300))
    found = samples()
    assert found["memorymark_deliveries_waiting",] == 1
    assert 300 <= found["memorymark_news_overdue_seconds",] < 400
    NewsEvent.objects.update(dispatched_at=None, created_at=ago(900))
    assert 900 <= samples()["memorymark_news_overdue_seconds",] < 1000


def test_a_device_tells_its_heartbeat_memory_and_flags():
    make_host("lab", drained=True)
    make_card(host=Host.objects.get(), uuid="GPU-1", last_seen_at=ago(30), memory_used_bytes=5, foreign_used_bytes=3)
    found, labels = samples(), ("cuda:0", "lab", "GPU-1")
    assert 30 <= found["memorymark_device_heartbeat_age_seconds", *labels] < 50
    assert found["memorymark_device_memory_used_bytes", *labels] == 5
    assert found["memorymark_device_foreign_used_bytes", *labels] == 3
    flags = [found[f"memorymark_device_{name}", *labels] for name in ("enabled", "drained", "in_maintenance")]
    assert flags == [1, 1, 0]


def test_what_is_not_known_of_a_device_is_left_out():
    make_card(last_seen_at=None)
    names = {key[0] for key in samples()}
    assert "memorymark_device_capacity_bytes" in names
    assert not names & {"memorymark_device_memory_used_bytes", "memorymark_device_heartbeat_age_seconds"}


def test_a_card_that_was_replaced_does_not_spoil_the_scrape():
    make_card(uuid="GPU-1")
    make_card(uuid="GPU-2")
    assert len([key for key in samples() if key[0] == "memorymark_device_enabled"]) == 2


def test_the_number_of_queries_does_not_grow_with_the_rows(django_assert_max_num_queries):
    for number in range(4):
        make_run(make_card(number, host=f"host{number}"))
    with django_assert_max_num_queries(10):
        metrics_text()


@pytest.mark.parametrize(
    ("begins", "ends", "is_in"),
    [
        (None, None, False),
        (-60, None, True),
        (60, None, False),
        (-60, 60, True),
        (-60, -30, False),
        (None, 60, True),
        (None, -60, False),
    ],
)
def test_maintenance_begins_and_ends_when_it_says(begins, ends, is_in):
    now = timezone.now()
    at = {None: None, **{seconds: now + timedelta(seconds=seconds) for seconds in (-60, -30, 60)}}
    assert Host(maintenance_from=at[begins], maintenance_until=at[ends]).is_in_maintenance(now) is is_in


def test_the_nearest_rank_is_a_value_that_was_seen():
    assert [nearest_rank([1.0, 2.0, 3.0, 4.0], quantile) for quantile in (0.0, 0.5, 0.95, 1.0)] == [1, 2, 4, 4]


def test_strangers_get_401_in_our_form(client):
    answer = client.get(PATH)
    assert answer.status_code == 401
    assert answer.json()["status"] == "error"


def test_who_is_signed_in_may_read(alice_client):
    answer = alice_client.get(PATH, headers={"Accept": "text/plain"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("token", "header", "status"),
    [
        ("secret", "Bearer secret", 200),
        ("secret", "bearer secret", 200),
        ("secret", "Bearer other", 401),
        ("secret", "Bearer s\u00e9cret", 401),
        ("secret", "Bearer", 401),
        ("", "Bearer ", 401),
    ],
)
def test_the_token_opens_and_an_empty_one_never_does(client, settings, token, header, status):
    settings.METRICS_TOKEN = token
    assert client.get(PATH, headers={"Authorization": header}).status_code == status
