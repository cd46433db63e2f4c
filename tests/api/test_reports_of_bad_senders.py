"""What a broken or hostile sender reports gets an answer that names what is wrong, or is stored: it breaks no page."""

import json
from typing import Any

import pytest

from analysis.models import Run
from tests.factories.reports import make_document

pytestmark = pytest.mark.django_db
NOT_STORABLE = ["\ud800", "\x00"]


def with_part(path: str, name: str, value: Any) -> bytes:
    """A document with this member in the object at the path."""
    document = json.loads(make_document())
    place = document["result"]
    for step in path.split():
        place = place[step]
    place[name] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize("text", NOT_STORABLE)
def test_text_of_a_document_that_no_database_stores_is_marked(sender, text):
    answer = sender.send_result(with_part("device", "uuid", f"GPU-{text}"))
    assert answer.status_code == 201, answer.content
    run = Run.objects.with_places().get()
    assert (run.device.uuid, run.result["device"]["uuid"]) == ("GPU-\ufffd", "GPU-\ufffd")


@pytest.mark.parametrize("text", NOT_STORABLE)
@pytest.mark.parametrize("path", ["", "kinds"])
def test_text_that_no_database_stores_in_what_is_no_fact_is_not_stored(sender, text, path):
    answer = sender.send_result(with_part(path, "a" + text, "b" + text))
    assert answer.status_code == 201, answer.content
    assert "\ufffd" not in json.dumps(Run.objects.get().result, ensure_ascii=False)


@pytest.mark.parametrize("text", NOT_STORABLE)
def test_text_that_no_database_stores_is_shown_where_a_document_is_refused_for_it(sender, text):
    answer = sender.send_result(with_part("spec", "a" + text, "b"))
    assert answer.status_code in (400, 422), answer.content
    assert answer.json()["errors"]
    assert not Run.all_runs.exists()


@pytest.mark.parametrize("host", ["a\x07", "a\ud800", "a\u202e"])
def test_a_host_whose_name_cannot_be_shown_is_refused(sender, host):
    answer = sender.send_result(make_document(host=host))
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/environment.host"]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_that_is_none_in_utc_is_refused_by_its_name(sender, moment):
    answer = sender.send_result(with_part("environment", "started_at", moment))
    assert answer.status_code == 400, answer.content
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/environment.started_at"]
