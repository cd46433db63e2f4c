"""Nobody changes or deletes an entry, whoever she is; only retention takes the oldest away."""

from datetime import timedelta

import pytest
from django.utils import timezone

from analysis.audit.record import record
from analysis.models import AuditEntry
from analysis.models.audit import AuditEntryImmutableError

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry() -> AuditEntry:
    record("run.delete", target=("run", "17"))
    return AuditEntry.objects.get(action="run.delete")


def test_no_code_changes_or_deletes_an_entry_by_mistake(entry):
    for forbidden in (entry.save, entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(AuditEntryImmutableError):
            forbidden()
    with pytest.raises(AuditEntryImmutableError):
        AuditEntry.objects.update(actor_name="somebody else")


@pytest.mark.parametrize("path", ["add/", "{}/change/", "{}/delete/"])
def test_in_the_panel_even_a_superuser_can_only_read(root_client, entry, path):
    answer = root_client.post(f"/admin/analysis/auditentry/{path.format(entry.pk)}", {"actor_name": "x"})
    assert answer.status_code == 403
    assert AuditEntry.objects.get(pk=entry.pk).actor_name == ""


def test_the_oldest_go_by_retention(entry):
    assert AuditEntry.objects.all().purge_before(timezone.now() - timedelta(days=1), limit=10) == 0
    assert AuditEntry.objects.all().purge_before(timezone.now() + timedelta(days=1), limit=10) == 1


@pytest.mark.parametrize(("text", "count"), [("run 17", 1), ("run:17", 1), ("run 18", 0), ("req-1", 1), ("alice", 1)])
def test_the_log_is_searched_by_request_person_and_target(root_client, alice, entry, text, count):
    from analysis.audit.context import WorkCause, caused_by

    with caused_by(WorkCause("req-1", actor=alice)):
        record("run.cancel", target=("run", "3"))
    rows = root_client.get("/admin/analysis/auditentry/", {"q": text}).context["cl"].result_list
    assert len(rows) == count


def test_further_pages_begin_after_the_last_entry(root_client):
    for number in range(60):
        record("run.delete", target=("run", str(number)))
    first = root_client.get("/admin/analysis/auditentry/?kind=run").context["cl"]
    second = root_client.get(f"/admin/analysis/auditentry/{first.next_query}").context["cl"]
    assert [row.target_id for row in second.result_list] == [str(number) for number in range(9, -1, -1)]
    assert second.next_query is None


@pytest.mark.parametrize(
    "query", ["?days=7&action=run.delete", "?action=run.delete", "?kind=run", "?target_kind=run&target_id=17"]
)
def test_the_log_is_filtered(root_client, entry, query):
    rows = root_client.get(f"/admin/analysis/auditentry/{query}").context["cl"].result_list
    assert [row.pk for row in rows] == [entry.pk]
