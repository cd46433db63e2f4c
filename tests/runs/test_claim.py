"""Whose run a device gets, and which devices get none."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from django_q.models import OrmQ

from analysis.models import Attempt, Device, Run, State
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.errors import SpecError
from engine.text.units import GIB
from tests.factories import make_card, make_device, make_host, make_run, make_spec, make_user

pytestmark = pytest.mark.django_db
ANY_CARD = Placement(kind="cuda")


@pytest.fixture
def bob(db) -> User:
    return make_user("bob")


def submit(place: Placement = ANY_CARD, by: User | None = None, *, precision: str = "fp32", **columns: object) -> Run:
    known = ("priority", "accepts_shared_device", "uses_device_price")
    asked = {name: columns.pop(name) for name in known if name in columns}
    return services.run_create(spec=make_spec(precision=precision, **columns), place=place, requested_by=by, **asked)


def claim(device: Device) -> Run | None:
    return services.run_claim(device=device, owner="worker")


def finish(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=State.FINISHED)


def claims_until_nothing_waits(device: Device) -> list[Run]:
    done = []
    while run := claim(device):
        finish(run)
        done.append(run)
    return done


def test_a_run_that_asks_for_a_kind_has_no_device_until_one_takes_it():
    card = make_card()
    run = submit()
    assert (run.device, run.requested_device, run.requested_kind) == (None, None, "cuda")
    claimed = claim(card)
    assert (claimed.pk, claimed.device, claimed.spec["device"]) == (run.pk, card, "cuda:0")


def test_a_claim_writes_down_its_attempt():
    card = make_card()
    run = submit()
    claim(card)
    attempt = Attempt.objects.get()
    assert (attempt.run, attempt.number, attempt.device, attempt.owner) == (run, 1, card, "worker")
    assert (attempt.outcome, attempt.ended_at) == ("", None)


def test_people_take_turns(alice, bob):
    card = make_card()
    for _ in range(3):
        submit(by=alice)
    for _ in range(2):
        submit(by=bob)
    done = claims_until_nothing_waits(card)
    assert [run.requested_by.username for run in done] == ["alice", "bob", "alice", "bob", "alice"]


def test_who_has_a_run_under_way_waits_for_who_has_none(alice, bob):
    first, second = make_card(0), make_card(1)
    submit(by=alice), submit(by=alice)
    claim(first)
    late = submit(by=bob)
    assert claim(second) == late


def test_runs_of_nobody_count_as_those_of_one_person(alice):
    card = make_card()
    submit(), submit()
    hers = submit(by=alice)
    assert claims_until_nothing_waits(card)[1] == hers


@pytest.mark.parametrize(("device_class", "taken"), [("a100", True), ("H100", False), ("A_00", False), ("", True)])
def test_a_class_is_part_of_the_cards_name(device_class, taken):
    make_card(1, name="NVIDIA H100 and A_00")
    card = make_card(0)
    submit(Placement(kind="cuda", device_class=device_class))
    assert bool(claim(card)) is taken


def test_a_device_of_another_kind_takes_nothing():
    make_card()
    submit()
    assert claim(make_device()) is None


def test_a_card_that_is_too_small_or_too_old_leaves_the_run_to_another():
    small, old, good = (
        make_card(0, capacity_bytes=4 * GIB),
        make_card(1, compute_capability="7.5"),
        make_card(2),
    )
    run = submit(precision="bf16", memory_limit_bytes=6 * GIB)
    assert [claim(card) for card in (small, old, good)] == [None, None, run]


def test_an_allow_list_keeps_others_out(alice, bob):
    card, lab = make_card(0), Group.objects.create(name="lab")
    make_card(1)
    card.allowed_groups.add(lab)
    bob.groups.add(lab)
    submit(), submit(by=alice)
    his = submit(by=bob)
    assert claims_until_nothing_waits(card) == [his]


@pytest.mark.parametrize("columns", [{"enabled": False}, {"drained": True}])
def test_a_device_that_is_disabled_or_drained_takes_nothing(columns):
    card = make_card()
    submit()
    Device.objects.filter(pk=card.pk).update(**columns)
    assert claim(card) is None


def test_a_drained_host_takes_nothing_on_any_of_its_devices():
    card = make_card()
    submit()
    make_host(drained=True)
    assert claim(card) is None


HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("begins", "ends", "takes"),
    [
        (-HOUR, None, False),
        (-HOUR, HOUR, False),
        (None, HOUR, False),
        (HOUR, 2 * HOUR, True),
        (-2 * HOUR, -HOUR, True),
        (None, -HOUR, True),
    ],
)
@pytest.mark.parametrize("of_host", [False, True])
def test_maintenance_keeps_new_runs_away_while_it_lasts(begins, ends, takes, of_host):
    card, now = make_card(), timezone.now()
    submit()
    window = {
        "maintenance_from": None if begins is None else now + begins,
        "maintenance_until": None if ends is None else now + ends,
    }
    rows = type(card.host).objects.all() if of_host else Device.objects.all()
    rows.update(**window)
    assert bool(claim(card)) is takes


def test_a_card_that_others_use_takes_only_runs_that_accept_it():
    card = make_card(foreign_used_bytes=GIB)
    submit()
    accepting = submit(accepts_shared_device=True)
    assert claims_until_nothing_waits(card) == [accepting]


def test_little_foreign_memory_does_not_prevent_a_start():
    card = make_card(capacity_bytes=80 * GIB, foreign_used_bytes=3 * GIB)
    assert submit() == claim(card)


@pytest.mark.parametrize(("uses", "price"), [(True, 2.5), (False, 0.6)])
def test_the_price_of_the_device_that_takes_it_stands_in_where_none_was_named(uses, price):
    card = make_card(price_per_hour_usd=2.5)
    submit(uses_device_price=uses)
    assert claim(card).spec["price_per_hour_usd"] == price


def test_the_order_is_ignored_for_a_run_that_is_named():
    card = make_card()
    submit()
    second = submit()
    assert services.run_claim(device=card, owner="me", run_id=second.pk) == second


def test_a_claim_asks_few_questions_however_many_wait(alice, bob, django_assert_max_num_queries):
    card = make_card()
    for number in range(30):
        submit(by=(alice, bob, None)[number % 3])
    with django_assert_max_num_queries(12):  # of them two for the transaction, two to write, one to read it back
        assert claim(card)


def test_a_kind_wakes_at_most_three_devices_that_could_start_now():
    cards = [make_card(number) for number in range(6)]
    Device.objects.filter(pk=cards[0].pk).update(drained=True)
    Device.objects.filter(pk=cards[1].pk).update(last_seen_at=timezone.now() - HOUR)
    Device.objects.filter(pk=cards[2].pk).update(foreign_used_bytes=4 * GIB)
    submit()
    assert list(OrmQ.objects.values_list("key", flat=True)) == [card.queue_name for card in cards[3:]]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"memory_limit_bytes": 900 * GIB}, "memory_limit_bytes"),
        ({"precision": "bf16"}, "precision"),
        ({"precision": "tf32"}, "precision"),
        ({"priority": 1}, "priority"),
        ({"priority": 7}, "priority"),
    ],
)
def test_what_no_card_of_the_kind_can_do_is_refused_with_its_field(alice, values, field):
    make_card(0, compute_capability="7.5")
    with pytest.raises(SpecError) as caught:
        submit(by=alice, **values)
    assert caught.value.field == field
    assert not Run.objects.exists()


def test_a_device_that_one_may_not_use_is_refused(alice, bob):
    card = make_card()
    card.allowed_users.add(bob)
    with pytest.raises(SpecError, match="may use"):
        submit(Placement(device=card), by=alice)
    assert submit(Placement(device=card), by=bob).requested_device == card


def test_many_are_cancelled_at_once(django_assert_num_queries):
    card = make_card()
    runs = [submit() for _ in range(4)]
    claim(card)
    finish(runs[3])
    with django_assert_num_queries(7):  # two for the transaction, one for the audit log, one for the news
        assert services.runs_cancel(run_ids=[run.pk for run in runs]) == 3
    assert Run.objects.filter(state=State.CANCELLED).count() == 2
    assert Run.objects.get(state=State.RUNNING).cancel_requested


def test_a_named_device_is_woken_even_when_it_is_busy():
    card = make_card()
    submit()
    claim(card)
    OrmQ.objects.all().delete()
    make_run(card)
    assert OrmQ.objects.get().key == card.queue_name
