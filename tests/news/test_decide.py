"""What is news, for whom, and when a failed delivery is tried again."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from analysis.lists.trend.step_detection import Step
from analysis.models import Device, NewsEvent, NewsKind, Run, SavedView, Subscription
from analysis.news.decide import contradiction, new_steps, news_after, note_silent_devices
from analysis.news.deliver import LONGEST_SECONDS, delay_seconds
from analysis.news.fan_out import wants
from analysis.news.week import note_week
from analysis.permissions import VIEWER
from analysis.runs import services
from engine.facts.result import Boundary, Reason
from engine.questions.documents.estimated import EstimatedCard
from tests.factories import make_claimed_run, make_device, make_host, make_measured_run, make_result, make_user
from tests.factories.estimates import estimate_of_card


def estimate(safe: int = 8, margin: float = 0.1) -> dict[str, Any]:
    card = {"id": "a10", "name": "NVIDIA A10", "total_bytes": 1}
    return estimate_of_card(card, safe + 1, safe, margin_fraction=margin)


@pytest.mark.parametrize(
    ("peak_error", "measured", "is_news"),
    [
        (0.05, 8, False),
        (0.10, 8, False),
        (0.11, 8, True),
        (-0.11, None, True),
        (None, 7, True),
        (None, 8, False),
        (None, None, False),
    ],
)
def test_an_estimate_is_contradicted_beyond_its_own_margin_or_where_its_safe_size_did_not_fit(
    peak_error: float | None, measured: int | None, is_news: bool
) -> None:
    assert bool(contradiction(EstimatedCard.from_dict(estimate()), peak_error, measured)) is is_news


def test_a_step_is_new_unless_a_known_one_of_its_direction_stands_near_to_it() -> None:
    up, down = Step(8, 100.0, 110.0), Step(9, 100.0, 90.0)
    assert new_steps([], [up]) == [up]
    assert new_steps([up], [Step(9, 100.0, 110.0)]) == []
    assert new_steps([up], [up, down]) == [down]
    assert new_steps([up], [Step(20, 110.0, 120.0)]) == [Step(20, 110.0, 120.0)]


def measured_with(device: Device, largest: int, owner: User) -> Run:
    run = make_claimed_run(device, requested_by=owner)
    boundary = Boundary(largest, True, largest + 1, Reason.OUT_OF_MEMORY, "over", 5)
    result = make_result(boundary=boundary, spec=run.run_spec)
    services.run_finish(run_id=run.pk, token=run.token, result=result.to_dict())
    run.refresh_from_db()
    return run


@pytest.mark.django_db
def test_the_run_that_makes_a_step_visible_is_news_once_and_names_the_step(alice: User) -> None:
    device = make_device()
    runs = [measured_with(device, size, alice) for size in (100, 100, 100, 100, 50, 50, 50, 50, 50)]
    found = [[event.key for event in news_after(run)] for run in runs]
    assert found == [[]] * 7 + [[f"step:{runs[4].pk}:boundary"], []]
    (event,) = news_after(runs[7])
    assert event.details["verdict"].endswith(f"fell from 100 to 50, from run {runs[4].pk} on.")


@pytest.mark.django_db
def test_a_device_that_went_silent_is_news_once_for_each_silence() -> None:
    quiet, seen = timezone.now() - timedelta(minutes=5), timezone.now()
    silent = make_device(last_seen_at=quiet)
    make_device("other", last_seen_at=seen)
    make_device("gone", last_seen_at=seen - timedelta(days=3))
    make_device(make_host("drained", drained=True), last_seen_at=quiet)
    note_silent_devices()
    note_silent_devices()
    assert NewsEvent.objects.get().device == silent
    Device.objects.filter(pk=silent.pk).update(last_seen_at=quiet + timedelta(minutes=1))
    note_silent_devices()
    assert NewsEvent.objects.count() == 2


@pytest.mark.django_db
def test_each_week_the_lab_hears_once_what_it_lost_without_names_of_people(alice: User) -> None:
    monday = timezone.now() + timedelta(days=7 - timezone.now().weekday())
    assert not note_week(monday)  # nothing was measured
    make_measured_run(make_device(), requested_by=alice)
    assert [note_week(monday), note_week(monday + timedelta(days=2))] == [True, False]
    said = NewsEvent.objects.get(kind=NewsKind.WEEK).details["verdict"]
    assert "What changes would save: BERT tiny: $60.00 a year, 624.0 MiB unused." in said
    assert "alice" not in said


@pytest.mark.django_db
def test_only_gpu_managers_hear_what_the_lab_lost(alice: User, root: User) -> None:
    event = NewsEvent(kind=NewsKind.WEEK, details={"verdict": "lost"})
    hears = [wants(Subscription(owner=each, kinds=[NewsKind.WEEK]), event, None) for each in (alice, root)]
    assert hears == [False, True]


@pytest.mark.django_db
class TestForWhom:
    """Which subscriptions an event is for."""

    def test_another_persons_run_is_no_news_of_my_runs(self, subscribe, send, receiver):
        subscribe()
        make_measured_run(make_device(), requested_by=make_user("bob"))
        send()
        assert receiver.received == []

    def test_a_saved_view_matches_runs_of_every_person(self, subscribe, send, receiver, alice):
        view = SavedView.objects.create(owner=alice, name="tiny", query="model=bert-tiny&state=finished")
        other = SavedView.objects.create(owner=alice, name="large", query="model=bert")
        subscribe(view=view)
        subscribe(name="not this", view=other)
        run = make_measured_run(make_device(), requested_by=make_user("bob"))
        send()
        assert [json.loads(each.body)["run"] for each in receiver.received] == [run.pk]

    def test_a_deleted_view_matches_no_run(self, subscribe, send, receiver, alice):
        view = SavedView.objects.create(owner=alice, name="tiny", query="model=bert-tiny")
        subscribe(view=view)
        view.delete()
        make_measured_run(make_device(), requested_by=alice)
        send()
        assert receiver.received == []

    def test_a_kind_that_was_not_chosen_is_not_sent(self, subscribe, send, receiver, alice):
        subscribe(kinds=[NewsKind.FAILED])
        make_measured_run(make_device(), requested_by=alice)
        send()
        assert receiver.received == []

    def test_what_happened_before_the_subscription_is_not_sent(self, subscribe, send, receiver, alice):
        make_measured_run(make_device(), requested_by=alice)
        subscribe()
        send()
        assert receiver.received == []

    @pytest.mark.parametrize("change", [{"is_active": False}, {"role": None}])
    def test_a_person_who_may_read_no_longer_hears_nothing(self, subscribe, send, receiver, change):
        bob = make_user("bob", VIEWER)
        subscribe(bob)
        if "role" in change:
            bob.groups.clear()
        else:
            User.objects.filter(pk=bob.pk).update(**change)
        make_measured_run(make_device(), requested_by=bob)
        send()
        assert receiver.received == []

    def test_a_run_that_was_deleted_meanwhile_is_no_news(self, subscribe, send, receiver, alice):
        subscribe()
        run = make_measured_run(make_device(), requested_by=alice)
        services.runs_delete(run_ids={run.pk}, by=alice)
        send()
        assert receiver.received == []


def test_delays_double_up_to_an_hour() -> None:
    delays = [delay_seconds(attempts, base_seconds=10, fraction=1.0) for attempts in range(1, 12)]
    assert delays[:4] == [10, 20, 40, 80]
    assert delays[-1] == LONGEST_SECONDS


@given(attempts=st.integers(1, 10_000), fraction=st.floats(0, 1))
def test_a_delay_lies_in_the_upper_half_of_its_range(attempts: int, fraction: float) -> None:
    longest = delay_seconds(attempts, base_seconds=10, fraction=1.0)
    assert longest / 2 <= delay_seconds(attempts, base_seconds=10, fraction=fraction) <= longest
