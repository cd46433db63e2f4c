"""Reported runs count for nothing until a GPU manager trusts their token or their host, and no longer when revoked."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.db.models import ProtectedError
from django.test import Client

from analysis.lists.trend.query import newest_measured
from analysis.models import AuditEntry, MatrixCell, Run, Trust
from analysis.runs import services
from analysis.runs.earlier.fits import fit_known
from analysis.runs.earlier.reuse import earlier_result
from analysis.runs.queue.forecast import typical_seconds
from analysis.runs.reported.trust import is_trusted
from engine.text.units import GIB
from tests.factories import STACK, make_device, make_measured_run, make_spec, make_user
from tests.factories.reports import HOST, SendingClient, make_document, make_reported_run

pytestmark = pytest.mark.django_db
SPEC = make_spec(current_batch_size=4, memory_limit_bytes=GIB, device="cpu")


@pytest.fixture
def own_device() -> Any:
    device = make_device()
    make_measured_run(device, stack=STACK, optimizer="sgd")
    return device


def counts_for(run: Run, device: Any) -> dict[str, bool]:
    reused = earlier_result(SPEC, [device])
    known = fit_known(replace(SPEC, check_batch_size=8), [device])
    return {
        "recommendation": reused is not None and reused.run == run,
        "known fit": known is not None and known.run == run,
        "matrix": MatrixCell.objects.filter(run=run).exists(),
        "trend": run in newest_measured(10),
        "queue": typical_seconds(run.model) == pytest.approx(120.0, abs=1.0),
    }


@pytest.mark.parametrize("by", ["token", "host"])
def test_a_reported_run_counts_only_while_its_token_or_host_is_trusted(alice: User, root: User, own_device, by: str):
    run = make_reported_run(alice)
    Run.objects.exclude(pk=run.pk).update(started_at=None)
    assert not any(counts_for(run, own_device).values())
    trust = services.trust_give(by=root, **({"token": run.report.token} if by == "token" else {"host": HOST}))
    assert all(counts_for(run, own_device).values()), counts_for(run, own_device)
    assert services.trust_revoke(trust_id=trust.pk, by=root)
    assert not any(counts_for(run, own_device).values())


def test_what_a_trusted_token_reports_later_counts_at_once_and_another_token_s_does_not(alice: User, root: User):
    trusted, other = SendingClient(alice), SendingClient(make_user("bob"))
    services.trust_give(by=root, token=trusted.token)
    trusted.send_result(make_document(host="a"))
    other.send_result(make_document(host="a"))
    assert dict(Run.objects.values_list("requested_by__username", "is_trusted")) == {"alice": True, "bob": False}


def test_a_run_that_two_trusts_cover_counts_until_both_are_revoked(alice: User, root: User):
    run = make_reported_run(alice)
    trusts = [services.trust_give(by=root, token=run.report.token), services.trust_give(by=root, host=HOST)]
    services.trust_revoke(trust_id=trusts[0].pk, by=root)
    assert Run.objects.get(pk=run.pk).is_trusted
    services.trust_revoke(trust_id=trusts[1].pk, by=root)
    assert not Run.objects.get(pk=run.pk).is_trusted


def test_a_baseline_needs_trust_and_is_unpinned_when_that_is_revoked(alice: User, root: User):
    run = make_reported_run(alice)
    refused = services.runs_set_baseline(run_ids={run.pk}, by=alice, is_baseline=True)
    assert (refused.done, refused.not_possible) == (0, 1)
    trust = services.trust_give(by=root, host=HOST)
    assert services.runs_set_baseline(run_ids={run.pk}, by=alice, is_baseline=True).done == 1
    services.trust_revoke(trust_id=trust.pk, by=root)
    assert not Run.objects.get(pk=run.pk).is_baseline


def test_a_run_of_this_portal_is_never_touched(root: User):
    run = make_measured_run(make_device(HOST))
    trust = services.trust_give(by=root, host=HOST)
    services.trust_revoke(trust_id=trust.pk, by=root)
    assert Run.objects.get(pk=run.pk).is_trusted


def test_trust_is_given_and_revoked_in_the_panel_and_recorded_with_who_and_when(alice: User, root: User, root_client):
    run = make_reported_run(alice)
    page = root_client.get(f"/admin/analysis/trust/add/?run={run.pk}").content.decode()
    assert str(run.report.token.prefix) in page
    assert root_client.post("/admin/analysis/trust/add/", {"token": run.report.token_id, "host": ""}).status_code == 302
    trust = Trust.objects.get()
    assert (trust.trusted_by, Run.objects.get(pk=run.pk).is_trusted) == (root, True)
    data = {"action": "revoke", "_selected_action": [trust.pk]}
    root_client.post("/admin/analysis/trust/", data)
    trust.refresh_from_db()
    assert (trust.revoked_by, Run.objects.get(pk=run.pk).is_trusted) == (root, False)
    assert trust.revoked_at is not None
    entries = AuditEntry.objects.filter(action__startswith="trust.").order_by("pk")
    assert [(entry.action, entry.actor) for entry in entries] == [("trust.give", root), ("trust.revoke", root)]


@pytest.mark.parametrize("fields", [{"token": "", "host": ""}, {"host": "a\x07"}])
def test_trust_in_nothing_is_refused(root_client: Client, fields):
    assert root_client.post("/admin/analysis/trust/add/", fields).status_code == 200
    assert not Trust.objects.exists()


def test_trust_that_is_given_twice_is_one_and_finds_runs_that_do_not_count_yet(alice: User, root: User):
    run = make_reported_run(alice)
    first = services.trust_give(by=root, host=HOST)
    Run.objects.filter(pk=run.pk).update(is_trusted=False)
    assert services.trust_give(by=root, host=HOST) == first
    assert Run.objects.get(pk=run.pk).is_trusted
    assert AuditEntry.objects.filter(action="trust.give").count() == 1


@pytest.mark.django_db(transaction=True)
def test_trust_that_is_given_while_a_run_is_being_stored_counts_for_that_run(alice: User, root: User):
    checked, token = threading.Event(), SendingClient(alice).token
    run = make_reported_run(alice)

    def store() -> None:
        with transaction.atomic():
            trusted = is_trusted(token, HOST)
            checked.set()
            time.sleep(0.3)  # the trust is given here, and waits
            Run.objects.filter(pk=run.pk).update(is_trusted=trusted)
        connections.close_all()

    Run.objects.filter(pk=run.pk).update(is_trusted=True)
    storing = threading.Thread(target=store)
    storing.start()
    assert checked.wait(10)
    services.trust_give(by=root, host=HOST)
    storing.join()
    assert Run.objects.get(pk=run.pk).is_trusted


def test_an_account_whose_token_was_trusted_is_closed_and_not_deleted_so_that_the_trust_can_be_revoked(
    alice: User, root: User, root_client: Client
):
    run = make_reported_run(alice)
    trust = services.trust_give(by=root, token=run.report.token)
    page = root_client.post(f"/admin/auth/user/{alice.pk}/delete/", {"post": "yes"}).content.decode()
    assert "Close the account instead" in page
    with pytest.raises(ProtectedError):
        User.objects.get(pk=alice.pk).delete()
    assert services.trust_revoke(trust_id=trust.pk, by=root)
    assert not Run.objects.get(pk=run.pk).is_trusted
