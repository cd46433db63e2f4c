"""A number that no column holds is refused in the panel's lists as any other lookup that cannot be done."""

import pytest

from analysis.models import Run
from tests.factories import make_run

pytestmark = pytest.mark.django_db

HUGE = "9" * 30
LOOKUPS = [
    *(("runlog", name) for name in ("run", "run_id", "run__exact", "id__in", "id__lt")),
    *(("attempt", "run"), ("attempt", "device"), ("measurement", "run"), ("matrixcell", "run")),
    *(("apitoken", "owner"), ("savedview", "owner"), ("trendacknowledgement", "run")),
    *((model, "id__in") for model in ("run", "device", "host", "auditentry", "quota", "gpuprice")),
]


@pytest.mark.parametrize(("model", "lookup"), LOOKUPS)
@pytest.mark.parametrize("number", [HUGE, f"-{HUGE}", str(2**63)])
def test_a_lookup_by_it_finds_nothing_or_is_refused(root_client, model, lookup, number):
    answer = root_client.get(f"/admin/analysis/{model}/", {lookup: number})
    assert (answer.status_code, answer.headers.get("Location", "?e=1")[-4:]) in ((302, "?e=1"), (200, "?e=1"))


@pytest.mark.parametrize("action", ["cancel", "retry", "export_csv", "soft_delete"])
def test_an_action_on_it_does_nothing(root_client, action):
    run = make_run()
    answer = root_client.post("/admin/analysis/run/", {"action": action, "_selected_action": [HUGE]})
    assert answer.status_code in (200, 302)
    assert list(Run.objects.values_list("pk", "state")) == [(run.pk, "queued")]


@pytest.mark.parametrize(("path", "action"), [("analysis/apitoken", "revoke"), ("auth/user", "close")])
def test_people_and_tokens_are_left_alone(root_client, path, action):
    answer = root_client.post(f"/admin/{path}/", {"action": action, "_selected_action": [HUGE, "x", "0"]})
    assert answer.status_code in (200, 302)
