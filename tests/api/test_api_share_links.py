"""Share links by API: create, list, withdraw."""

import pytest
from django.test import Client

from analysis.models import Run
from tests.factories import make_measured_run, make_user

pytestmark = pytest.mark.django_db


def test_a_link_is_created_listed_and_withdrawn(alice, alice_client):
    run = make_measured_run()
    Run.objects.update(requested_by=alice)
    body = {"run": run.pk, "days": 7}
    made = alice_client.post("/api/v1/share-links/", body, content_type="application/json")
    assert made.status_code == 201
    link = made.json()
    assert Client().get(link["url"]).status_code == Client().get(link["badge_url"]).status_code == 200
    listed = alice_client.get(f"/api/v1/share-links/?run={run.pk}").json()["results"]
    assert listed == [{name: value for name, value in link.items() if name not in ("url", "badge_url")}]
    assert alice_client.delete(made.headers["Location"]).status_code == 204
    assert alice_client.delete(made.headers["Location"]).status_code == 204
    assert Client().get(link["url"]).status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"), [({"days": 5}, "/days"), ({"days": None}, "/days"), ({"run": 999}, "/run")]
)
def test_what_is_not_allowed_names_its_field(alice, alice_client, body, pointer):
    run = make_measured_run()
    Run.objects.update(requested_by=alice)
    answer = alice_client.post(
        "/api/v1/share-links/", {"run": run.pk, "days": 7, **body}, content_type="application/json"
    )
    assert answer.status_code == 400
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_another_persons_links_are_not_listed(alice, alice_client):
    run = make_measured_run()
    Run.objects.update(requested_by=alice)
    alice_client.post("/api/v1/share-links/", {"run": run.pk, "days": 7}, content_type="application/json")
    client = Client()
    client.force_login(make_user("olga"))
    assert client.get("/api/v1/share-links/").json()["results"] == []
