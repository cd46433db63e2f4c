"""What a wish for a device comes to; a run of several gets them all or none, and every end gives them all back."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from analysis.models import Device, Quota, Run, State
from analysis.runs import services
from analysis.runs.queue.claim import DeviceSet
from analysis.runs.queue.forecast import queue_positions
from analysis.runs.queue.placement import Placement, placement_find, placement_of
from analysis.runs.queue.retry_policy import Cause
from engine.errors import SpecError
from engine.text.units import GIB
from tests.factories import make_card, make_device, make_result, make_run, make_run_of_several, make_user
from tests.runs.test_claim import claim, finish, submit

pytestmark = pytest.mark.django_db

HOUR = 3600.0


@pytest.fixture
def cards() -> list[Device]:
    """Three cards of a host; their UUIDs are not in the order of their numbers."""
    return [make_card(number, uuid=f"GPU-{name}") for number, name in enumerate("cab")]


def claim_set(first: Device) -> Run | None:
    found = services.claim_next(device=first, owner="worker")
    return services.set_claim(wanted=found, owner="worker") if isinstance(found, DeviceSet) else found


def held(run: Run) -> set[str]:
    return set(Device.objects.filter(held_for=run).values_list("device", flat=True))


def test_the_worker_of_the_first_uuid_takes_all_and_others_wake_it(cards):
    run = make_run_of_several(3)
    OrmQ.objects.all().delete()
    assert services.claim_next(device=cards[0], owner="worker") is None
    assert [message.key for message in OrmQ.objects.all()] == [cards[1].queue_name]
    wanted = services.claim_next(device=cards[1], owner="worker")
    assert [device.uuid for device in wanted.devices] == ["GPU-a", "GPU-b", "GPU-c"]
    assert (run.attempts.count(), held(run)) == (0, set())
    claimed = services.set_claim(wanted=wanted, owner="worker")
    assert (claimed.state, claimed.device, claimed.spec["device"]) == (State.RUNNING, cards[1], "cuda")
    assert held(run) == {"cuda:0", "cuda:1", "cuda:2"}
    assert claimed.attempts.get().devices == ["cuda:0", "cuda:1", "cuda:2"]


def test_each_of_its_devices_is_busy_and_says_for_which_run(cards):
    run = make_run_of_several(2)
    assert claim_set(cards[1]) == run
    submit(), submit()
    assert [claim(card) is not None for card in cards] == [False, False, True]
    running = dict(Device.objects.with_activity().values_list("device", "running_id"))
    assert (running["cuda:0"], running["cuda:1"]) == (run.pk, run.pk)


def test_none_is_taken_where_another_claim_was_quicker_on_one(cards):
    run = make_run_of_several(2)
    wanted = services.claim_next(device=cards[1], owner="worker")
    Run.objects.filter(pk=make_run(cards[0]).pk).update(
        state=State.RUNNING, device=cards[0], token="t", heartbeat_at=timezone.now()
    )
    assert services.set_claim(wanted=wanted, owner="worker") is None
    run.refresh_from_db()
    assert (run.state, run.attempt, held(run)) == (State.QUEUED, 0, set())


def end_finished(run: Run) -> None:
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())


def end_failed(run: Run) -> None:
    services.run_fail(run_id=run.pk, token=run.token, code="engine_died", message="")


def end_requeued(run: Run) -> None:
    services.run_fail(run_id=run.pk, token=run.token, code=Cause.OWNER_DIED, message="")


def end_cancelled(run: Run) -> None:
    services.run_mark_cancelled(run_id=run.pk, token=run.token)


def end_silent(run: Run) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    Run.objects.filter(pk=run.pk).update(heartbeat_at=long_ago, suspect_at=long_ago)
    assert services.runs_reap() == 1


@pytest.mark.parametrize("end", [end_finished, end_failed, end_requeued, end_cancelled, end_silent])
def test_every_end_gives_all_of_them_back(cards, end):
    make_run_of_several(2)
    run = claim_set(cards[1])
    end(run)
    run.refresh_from_db()
    assert run.state != State.RUNNING
    assert held(run) == set()
    assert Device.objects.idle().count() == 3


def test_a_run_of_one_device_costs_no_further_question(cards, django_assert_num_queries):
    make_run(cards[0])
    with django_assert_num_queries(9):  # as before there were runs of several; two are of the transaction
        run = claim(cards[0])
    with CaptureQueriesContext(connection) as asked:
        services.run_fail(run_id=run.pk, token=run.token, code="engine_died", message="")
    assert asked.captured_queries
    assert not [each for each in asked.captured_queries if "analysis_device" in each["sql"]]


@pytest.mark.parametrize(("budget", "starts"), [(HOUR, False), (60.0, True)])
def test_what_comes_behind_takes_a_reserved_device_only_if_its_time_budget_ends_before(cards, alice, budget, starts):
    for card in cards[1:]:
        make_run(card, time_budget_seconds=HOUR / 2)
        claim(card)
    make_run_of_several(3)
    behind = submit(by=alice, time_budget_seconds=budget)
    Run.objects.filter(pk=behind.pk).update(priority=-1)
    assert (claim(cards[0]) == behind) is starts


def test_a_device_that_its_person_may_not_use_is_neither_taken_nor_reserved(cards, root):
    bob = make_user("bob")
    Quota.objects.create(user=bob).devices.set(cards[:2])
    run, other = make_run_of_several(2, requested_by=bob), submit(by=root)
    assert claim(cards[2]) == other
    assert claim_set(cards[1]) == run
    assert held(run) == {"cuda:0", "cuda:1"}


def test_an_instance_of_a_card_is_never_one_of_several(cards):
    instance = make_card(3, uuid="MIG-0")
    Device.objects.filter(pk=cards[0].pk).update(drained=True)
    run = make_run_of_several(3)
    assert not Run.objects.waiting_for(instance).exists()
    assert claim_set(cards[1]) is None
    run.refresh_from_db()
    assert run.state == State.QUEUED


def test_cards_of_two_models_are_no_set(cards):
    """A result is of one card: a limit that two A100 have is not that of one beside a T4."""
    make_run_of_several(2)
    Device.objects.filter(pk=cards[1].pk).update(name="Tesla T4")
    Device.objects.filter(pk=cards[2].pk).update(enabled=False)
    assert [claim_set(card) for card in Device.objects.taking_runs()] == [None, None]


def test_it_is_expected_when_the_last_of_its_devices_is_free_and_what_is_behind_after_it(cards):
    done = make_run(cards[0], model="bert-tiny")
    claim(cards[0])
    now = timezone.now()
    Run.objects.filter(pk=done.pk).update(state=State.FINISHED, started_at=now - timedelta(minutes=10), finished_at=now)
    under_way = make_run(cards[0], time_budget_seconds=HOUR)
    claim(cards[0])
    several, behind = make_run_of_several(3, time_budget_seconds=HOUR), submit(time_budget_seconds=2 * HOUR)
    at = queue_positions([several, behind])
    assert (at[several.pk].position, at[several.pk].after_run) == (1, under_way.pk)
    assert at[behind.pk].position == 2
    assert at[behind.pk].start_at - at[several.pk].start_at == timedelta(minutes=10)


def test_runs_of_all_sizes_start_in_the_order_that_was_forecast(cards, alice, root):
    people = (alice, root, None)
    runs = [submit(by=people[n % 3]) if n % 2 else make_run_of_several(3, requested_by=people[n % 3]) for n in range(6)]
    expected, started = queue_positions(runs), list[int]()
    for _ in runs:
        under_way = [run for card in (cards[1], cards[0], cards[2]) if (run := claim_set(card))]
        started += [run.pk for run in under_way]
        for run in under_way:
            finish(run)
        Device.objects.update(held_for=None)
    assert len(started) == len(runs)
    large = {run.pk for run in runs if run.device_count > 1}
    in_order = sorted(large, key=lambda run_id: expected[run_id].position)
    assert [run_id for run_id in started if run_id in large] == in_order


def test_a_run_of_several_names_no_device(cards, monkeypatch):
    monkeypatch.setattr("analysis.runs.queue.create.devices_needed", lambda spec: 2)
    with pytest.raises(Exception, match="takes 2 devices of one host: name a kind"):
        submit(Placement(device=cards[0]))
    assert submit().device_count == 2


@pytest.mark.parametrize(("needed", "refused"), [(3, False), (4, True)])
def test_what_no_host_has_is_refused(cards, monkeypatch, needed, refused):
    make_card(0, host="other", uuid="GPU-d")
    monkeypatch.setattr("analysis.runs.queue.create.devices_needed", lambda spec: needed)
    if refused:
        with pytest.raises(Exception, match="no host has 4 enabled cuda devices of one model that you may use"):
            submit()
    else:
        assert submit().device_count == needed


def test_one_worker_of_each_host_is_woken_for_it(cards, monkeypatch):
    other = make_card(0, host="other", uuid="GPU-d")
    make_card(1, host="other", uuid="GPU-e")
    monkeypatch.setattr("analysis.runs.queue.create.devices_needed", lambda spec: 2)
    submit()
    woken = {message.key for message in OrmQ.objects.all()}
    hosts = [device.host_id for device in Device.objects.all() if device.queue_name in woken]
    assert sorted(hosts) == sorted([cards[0].host_id, other.host_id])


@pytest.mark.parametrize(("name", "kind"), [("auto", "cuda"), ("cuda", "cuda")])
def test_a_run_without_a_wish_may_go_to_any_of_the_best_kind(name, kind):
    make_device(capacity_bytes=500 * GIB)
    make_card()
    assert placement_find(name) == Placement(kind=kind)


@pytest.mark.parametrize("name", ["cpu", "cuda:1"])
def test_a_device_that_is_named_is_that_device(name):
    devices = {device.device: device for device in (make_device(), make_card(0), make_card(1))}
    assert placement_find(name) == Placement(device=devices[name])


def test_of_two_devices_of_one_name_the_one_whose_host_is_up_is_meant():
    make_card(host="away", last_seen_at=timezone.now() - timedelta(hours=1))
    up = make_card(host="up")
    assert placement_find("cuda:0") == Placement(device=up)


@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_a_class_is_any_part_of_the_vendors_name(name):
    make_card(name="NVIDIA A100-SXM4-80GB")
    assert placement_find(name, " a100 ") == Placement(kind="cuda", device_class="a100")


@pytest.mark.parametrize(
    ("name", "device_class", "field", "expected"),
    [
        ("xpu", "", "device", "no enabled device xpu; available: cuda:0"),
        ("cuda:7", "", "device", "available: cuda:0"),
        ("cuda", "H100", "device_class", "available: NVIDIA A100-SXM4-80GB"),
        ("cuda:0", "A100", "device_class", "allowed with `auto`"),
        ("auto", "A\x00", "device_class", "part of a card's name"),
        ("auto", "A" * 101, "device_class", "at most 100"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(name, device_class, field, expected):
    make_card(0)
    make_card(1, enabled=False)
    with pytest.raises(SpecError, match=expected) as caught:
        placement_find(name, device_class)
    assert caught.value.field == field


def test_without_any_device_the_error_says_how_to_get_one():
    with pytest.raises(SpecError, match="manage.py up"):
        placement_find("auto")


def test_a_device_of_others_is_not_offered(alice, root):
    card = make_card()
    card.allowed_users.add(alice)
    assert placement_find("auto", user=alice) == Placement(kind="cuda")
    for user in (root, AnonymousUser(), None):
        with pytest.raises(SpecError, match="no enabled device"):
            placement_find("auto", user=user)


def test_a_stored_run_asks_again_for_what_it_asked():
    run = make_run(make_card())
    assert placement_of(run) == Placement(device=run.requested_device)
