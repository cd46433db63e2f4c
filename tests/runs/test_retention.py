"""What retention throws away, what it keeps, and that it tells what it did."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from analysis.models import AuditEntry, Device, Host, MatrixCell, Measurement, RetentionRule, Run, RunLog
from analysis.runs import services
from analysis.runs.keeping import retention
from analysis.runs.services import LogLine
from analysis.workers import tasks
from tests.factories import make_claimed_run, make_device, make_measured_run, make_result, make_run
from tests.factories.reports import make_reported_run

pytestmark = pytest.mark.django_db
What = RetentionRule.What


def rule(what: str, days: int | None) -> RetentionRule:
    return RetentionRule.objects.update_or_create(what=what, defaults={"days": days})[0]


def ago(days: int):
    return timezone.now() - timedelta(days=days)


def applied(what: str) -> int | None:
    return next(each.count for each in retention.retain() if each.rule.what == what)


def test_a_deleted_run_goes_for_good_after_its_days_and_not_before(root):
    young, old = make_measured_run(), make_measured_run(make_device("other"))
    services.runs_delete(run_ids=[young.pk, old.pk], by=root)
    Run.all_runs.filter(pk=old.pk).update(deleted_at=ago(31))
    assert applied(What.DELETED_RUNS) == 1
    assert list(Run.all_runs.values_list("pk", flat=True)) == [young.pk]
    assert not Measurement.objects.filter(run=old.pk).exists()


def test_a_purge_leaves_the_matrix_with_the_newest_answer_there_is(root):
    device = make_device()
    older, newer = make_measured_run(device), make_measured_run(device)
    assert set(MatrixCell.objects.values_list("run", flat=True)) == {newer.pk}
    Run.all_runs.filter(pk=newer.pk).update(deleted_at=ago(31))
    applied(What.DELETED_RUNS)
    assert set(MatrixCell.objects.values_list("run", flat=True)) == {older.pk}


def test_old_runs_are_kept_for_ever_unless_somebody_says_otherwise():
    run = make_measured_run()
    Run.objects.filter(pk=run.pk).update(finished_at=ago(5_000))
    assert applied(What.OLD_RUNS) is None
    assert Run.objects.filter(pk=run.pk).exists()


def test_old_runs_are_deleted_so_that_they_can_be_restored_and_baselines_are_kept(root):
    baseline, plain = make_measured_run(), make_measured_run(make_device("other"))
    services.runs_set_baseline(run_ids=[baseline.pk], by=root, is_baseline=True)
    Run.objects.update(finished_at=ago(400))
    rule(What.OLD_RUNS, 365)
    assert applied(What.OLD_RUNS) == 1
    assert list(Run.objects.values_list("pk", flat=True)) == [baseline.pk]
    assert services.runs_restore(run_ids=[plain.pk], by=root).done == 1


def test_of_an_old_log_the_ends_and_what_went_wrong_are_kept():
    run = make_claimed_run()
    lines = [LogLine("error" if number == 50 else "info", f"line {number}") for number in range(1, 101)]
    services.log_add(run_id=run.pk, token=run.token, lines=lines, first_sequence=1)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    Run.objects.update(finished_at=ago(91))
    assert applied(What.LOG_LINES) == 59
    kept = list(RunLog.objects.order_by("sequence").values_list("sequence", flat=True))
    assert kept == [*range(1, 21), 50, *range(81, 101)]
    assert applied(What.LOG_LINES) == 0


def test_the_log_of_a_baseline_stays_whole(root):
    run = make_claimed_run()
    services.log_add(run_id=run.pk, token=run.token, lines=[LogLine("info", "x")] * 60, first_sequence=1)
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    Run.objects.update(finished_at=ago(91), is_baseline=True)
    assert applied(What.LOG_LINES) == 0


def test_what_was_done_stands_in_the_audit_log(root):
    run = make_measured_run()
    Run.objects.filter(pk=run.pk).update(deleted_at=ago(31))
    retention.retain()
    entry = AuditEntry.objects.get(action="retention")
    assert (entry.actor, entry.actor_name, entry.after["done"]) == (None, "retention", 1)


def test_a_reported_device_goes_with_the_last_run_that_names_it_and_its_host_too(alice):
    gone, stays = make_reported_run(alice, host="pod-1"), make_reported_run(alice, host="pod-2")
    Run.all_runs.filter(pk=gone.pk).update(deleted_at=ago(31))
    retention.retain()
    assert list(Device.all_devices.all()) == [stays.device]
    assert list(Host.objects.all()) == [stays.device.host]


@pytest.mark.parametrize(
    "maintenance", [{"drained": True}, {"maintenance_note": "fans"}, {"maintenance_until": ago(-1)}]
)
def test_a_host_whose_maintenance_somebody_set_stays(alice, maintenance):
    run = make_reported_run(alice)
    Host.objects.update(**maintenance)
    Run.all_runs.filter(pk=run.pk).update(deleted_at=ago(31))
    retention.retain()
    assert not Device.all_devices.exists()
    assert Host.objects.exists()


def test_a_host_that_workers_registered_stays_with_its_devices(alice):
    unused = make_device("node7")
    run = make_reported_run(alice, host="node7")
    idle = Host.objects.create(name="its worker comes later")
    Run.all_runs.filter(pk=run.pk).update(deleted_at=ago(31))
    retention.retain()
    assert list(Device.all_devices.all()) == [unused]
    assert set(Host.objects.all()) == {unused.host, idle}


def test_the_audit_log_is_kept_for_ever_unless_somebody_says_otherwise():
    services.runs_cancel(run_ids=[make_run().pk])
    entries = AuditEntry.objects.count()
    assert applied(What.AUDIT_ENTRIES) is None
    assert AuditEntry.objects.count() == entries


def test_a_rule_of_no_days_erases_no_entry_that_is_younger_than_a_year():
    for days in (1, 364, 366):
        AuditEntry.objects.create(action="run.cancel", target_kind="run", target_id=str(days), recorded_at=ago(days))
    rule(What.AUDIT_ENTRIES, 0)
    assert applied(What.AUDIT_ENTRIES) == 1
    assert set(AuditEntry.objects.filter(action="run.cancel").values_list("target_id", flat=True)) == {"1", "364"}


@pytest.mark.parametrize(("what", "days"), [("audit_entries", 364), ("deleted_runs", 0), ("log_lines", 36_501)])
def test_the_panel_refuses_days_that_are_too_few_or_too_many(root_client, what, days):
    row = rule(what, None)
    answer = root_client.post(f"/admin/analysis/retentionrule/{row.pk}/change/", {"days": days})
    assert answer.status_code == 200
    assert answer.context["adminform"].form.errors["days"]
    row.refresh_from_db()
    assert row.days is None


def test_a_run_that_was_restored_is_not_deleted_for_its_age_the_next_day(root):
    run = make_measured_run()
    Run.objects.update(finished_at=ago(400))
    rule(What.OLD_RUNS, 365)
    assert applied(What.OLD_RUNS) == 1
    services.runs_restore(run_ids=[run.pk], by=root)
    assert applied(What.OLD_RUNS) == 0
    Run.objects.update(restored_at=ago(366))
    assert applied(What.OLD_RUNS) == 1


def test_more_days_than_a_calendar_has_keep_everything():
    rule(What.DELETED_RUNS, 2_000_000_000)
    Run.objects.filter(pk=make_measured_run().pk).update(deleted_at=ago(31))
    assert applied(What.DELETED_RUNS) == 0


def test_a_rule_that_fails_is_due_again_and_the_others_are_applied(monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(retention, "_BATCHES", {**retention._BATCHES, What.DELETED_RUNS: fail})
    with pytest.raises(ExceptionGroup):
        retention.retain(seconds=20, only_due=True)
    assert set(RetentionRule.objects.filter(applied_at=None).values_list("what", flat=True)) == {What.DELETED_RUNS}


def test_a_dry_run_says_how_much_and_takes_nothing(capsys):
    run = make_measured_run()
    Run.objects.filter(pk=run.pk).update(deleted_at=ago(31))
    call_command("retain", "--dry-run")
    assert "would be 1 runs purged (older than 30 days)" in capsys.readouterr().out
    assert Run.all_runs.filter(pk=run.pk).exists()
    call_command("retain")
    assert "1 runs purged (older than 30 days)" in capsys.readouterr().out
    assert not Run.all_runs.filter(pk=run.pk).exists()


def test_a_worker_sees_to_it_once_a_day(django_assert_max_num_queries):
    RetentionRule.objects.update(applied_at=ago(2))
    assert len(retention.retain(seconds=20, only_due=True)) == len(What)
    with django_assert_max_num_queries(1):
        assert retention.retain(seconds=20, only_due=True) == []


def test_what_was_not_done_in_time_goes_on_at_the_next_look(monkeypatch):
    monkeypatch.setattr(retention, "_RUNS_AT_ONCE", 1)
    device = make_device()
    for _ in range(2):
        make_measured_run(device)
    Run.all_runs.update(deleted_at=ago(31))
    rule(What.DELETED_RUNS, 30)
    done = {each.rule.what: each.is_complete for each in retention.retain(seconds=0, only_due=True)}
    assert not done[What.DELETED_RUNS]
    assert RetentionRule.objects.get(what=What.DELETED_RUNS).applied_at is None
    retention.retain(seconds=20, only_due=True)
    assert not Run.all_runs.exists()


def test_housekeeping_applies_the_rules():
    run = make_measured_run()
    Run.objects.filter(pk=run.pk).update(deleted_at=ago(31))
    tasks.housekeep()
    assert not Run.all_runs.exists()
