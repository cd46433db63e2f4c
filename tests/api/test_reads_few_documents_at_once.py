"""Result documents are read one at a time: their work shares the interpreter with everybody's pages."""

import threading
from contextlib import ExitStack

import pytest
from django.contrib.auth.models import AnonymousUser

from analysis.api import waiting
from analysis.models import Run
from tests.factories.reports import make_document

pytestmark = pytest.mark.django_db
SOMEBODY = AnonymousUser()


@pytest.mark.parametrize(("threads", "places"), [(None, 4), (1, 1), (4, 1), (16, 4), (64, 16)])
def test_at_most_a_quarter_of_the_threads_read_documents_or_wait_to(settings, threads, places):
    settings.WEB_THREADS = threads
    assert waiting.documents.places() == places


def test_one_document_too_many_is_to_be_sent_again(sender, settings):
    settings.WEB_THREADS = 4
    with waiting.documents.place(SOMEBODY):
        answer = sender.send_result(make_document())
        assert (answer.status_code, answer.json()["code"]) == (503, "busy")
        assert 1 <= int(answer.headers["Retry-After"]) <= 4
        assert not Run.objects.exists()
    assert sender.send_result(make_document()).status_code == 201


def test_a_document_waits_for_the_one_that_is_read(sender, monkeypatch):
    """Two at once are stored no sooner, and everybody else waits twice as long."""
    monkeypatch.setattr(waiting, "DOCUMENT_WAIT_SECONDS", 0.01)
    with waiting.document_place(SOMEBODY):
        assert sender.send_result(make_document()).status_code == 503
    monkeypatch.setattr(waiting, "DOCUMENT_WAIT_SECONDS", 60.0)
    with ExitStack() as other:
        other.enter_context(waiting.document_place(SOMEBODY))
        threading.Timer(0.2, other.pop_all().close).start()
        assert sender.send_result(make_document()).status_code == 201


def test_documents_that_are_refused_give_their_place_back(sender, settings):
    settings.WEB_THREADS = 1
    for body in (b"{", b"{}", b"[]", make_document(timings={"processes": -5}), make_document(schema=2)):
        assert sender.send_result(body).status_code in (400, 422)
    document = make_document()
    assert [sender.send_result(document).status_code for _ in range(2)] == [201, 200]
