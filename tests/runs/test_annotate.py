"""What people do with stored runs: who may, what it changes, and what it answers."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from analysis.models import Run, RunText, SavedView, Tag
from analysis.runs import services
from tests.factories import make_claimed_run, make_device, make_result, make_run, make_user
from tests.factories.history import store

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(db) -> User:
    return make_user("bob")


def test_a_run_is_annotated_by_whoever_asked_for_it(alice):
    run = store(requested_by=alice)[0]
    services.run_annotate(run_id=run.pk, by=alice, name=" first ", note="quiet", tags=["Paper", "v2", "paper"])
    run.refresh_from_db()
    assert (run.name, run.note) == ("first", "quiet")
    assert [tag.name for tag in run.tags.all()] == ["paper", "v2"]
    assert RunText.objects.get(run=run).words == "bert tiny first quiet"


def test_nobody_else_may_and_the_staff_may(alice, bob, root):
    run = store(requested_by=alice)[0]
    refused = services.run_annotate(run_id=run.pk, by=bob, name="his", note="", tags=[])
    assert (refused.done, refused.not_allowed) == (0, 1)
    assert services.run_annotate(run_id=run.pk, by=root, name="hers", note="", tags=[]).done == 1
    assert Run.objects.get().name == "hers"


@pytest.mark.parametrize("tag", ["", "two words", "ü", "x" * 41, "-x"])
def test_what_is_no_tag_is_refused_and_changes_nothing(alice, tag):
    run = store(requested_by=alice)[0]
    with pytest.raises(ValidationError):
        services.run_annotate(run_id=run.pk, by=alice, name="new", note="", tags=[tag])
    assert Run.objects.get().name == ""
    assert not Tag.objects.exists()


def test_many_are_tagged_and_a_tag_without_runs_goes(alice, bob):
    hers, his = store(2, requested_by=alice), store(requested_by=bob)
    ids = [run.pk for run in (*hers, *his)]
    answer = services.runs_tag(run_ids=ids, by=alice, tag="paper")
    assert (answer.done, answer.not_allowed) == (2, 1)
    services.runs_untag(run_ids=[hers[0].pk], by=alice, tag="paper")
    assert Tag.objects.exists()
    services.runs_untag(run_ids=[hers[1].pk], by=alice, tag="paper")
    assert not Tag.objects.exists()


def test_a_deleted_run_is_in_no_list_and_comes_back(alice):
    run = store(requested_by=alice)[0]
    assert services.runs_delete(run_ids=[run.pk], by=alice).done == 1
    assert not Run.objects.exists()
    assert services.runs_restore(run_ids=[run.pk], by=alice).done == 1
    assert Run.objects.get().deleted_at is None


def test_what_still_goes_on_is_not_deleted(root):
    run = make_claimed_run()
    answer = services.runs_delete(run_ids=[run.pk], by=root)
    assert (answer.done, answer.not_possible) == (0, 1)
    assert "not over" in answer.reason


def test_a_baseline_is_a_finished_measurement_on_a_card_of_its_own(root):
    fit = store(is_shared=False)[0]
    others = [store(**columns)[0] for columns in ({"is_shared": True}, {"state": "failed"}, {"kind": "estimate"})]
    answer = services.runs_set_baseline(run_ids=[run.pk for run in (fit, *others)], by=root, is_baseline=True)
    assert (answer.done, answer.not_possible) == (1, 3)
    assert Run.objects.get(is_baseline=True) == fit


def test_a_baseline_is_not_deleted(root):
    run = store(is_shared=False, is_baseline=True)[0]
    assert services.runs_delete(run_ids=[run.pk], by=root).not_possible == 1
    assert Run.objects.exists()


def test_many_are_cancelled_and_those_over_are_counted(alice, bob):
    device = make_device()
    waiting = make_run(device, requested_by=alice)
    over, his = store(requested_by=alice)[0], make_run(device, requested_by=bob)
    answer = services.runs_cancel_by(run_ids=[waiting.pk, over.pk, his.pk], by=alice)
    assert (answer.done, answer.not_possible, answer.not_allowed) == (1, 1, 1)
    assert Run.objects.get(pk=his.pk).state == "queued"


def test_runs_are_repeated_as_new_ones_of_whoever_asks(alice, bob):
    run = make_claimed_run(make_device(), current_batch_size=7)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    answer = services.runs_retry(run_ids=[run.pk, make_run(run.device).pk], by=bob)
    assert (answer.done, answer.not_possible) == (1, 1)
    again = Run.objects.latest("pk")
    assert (again.requested_by, again.current_batch_size, again.requested_device) == (bob, 7, run.device)


def test_a_finished_run_has_what_its_line_shows():
    run = make_claimed_run()
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    run.refresh_from_db()
    assert run.memory_curve[-1][0] == 8
    assert run.limit_bytes == 2**30


def test_a_run_that_failed_keeps_the_name_of_its_device():
    run = make_claimed_run()
    services.run_fail(run_id=run.pk, token=run.token, code="engine", message="no", exit_status=1)
    assert Run.objects.get().device_name == "Test CPU"


def test_a_view_is_saved_once_under_its_name(alice, bob):
    for query in ("state=failed", "state=running"):
        services.saved_view_set(owner=alice, name="mine", query=query, is_shared=False)
    assert SavedView.objects.get().query == "state=running"
    assert not services.saved_view_delete(view_id=SavedView.objects.get().pk, by=bob)
    assert services.saved_view_delete(view_id=SavedView.objects.get().pk, by=alice)


@pytest.mark.parametrize(("name", "query"), [(" ", "state=failed"), ("long", "q=" + "x" * 2_000)])
def test_a_view_without_a_name_or_too_long_is_not_saved(alice, name, query):
    assert services.saved_view_set(owner=alice, name=name, query=query, is_shared=False) is None
