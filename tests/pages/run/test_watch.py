"""A watched training is a run: the API takes and shows it; its page, the history and the fleet say what it used."""

import html
import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.lists.use.load import settings_measured_since
from analysis.models import Run
from analysis.news.messages import describe_end
from analysis.runs.reported.trust import trust_give
from engine.questions.kinds import RunKind
from engine.text.units import GIB, MIB
from tests.factories import make_user
from tests.factories.pages import words
from tests.factories.reports import HOST, SendingClient, body_of, make_run_key
from tests.factories.watched import FULL, make_watched, make_watched_on_cpu

pytestmark = pytest.mark.django_db
LATE = "train.py: It trained, then ran out of memory: either a larger batch came, or memory grew."


def stored(sender: SendingClient, **facts: object) -> Run:
    return _sent(sender, make_watched(**facts).to_send(with_output=False).to_dict())


def _sent(sender: SendingClient, document: dict) -> Run:
    answer = sender.send_result(body_of(document))
    assert answer.status_code == 201, answer.content
    return Run.objects.get(pk=answer.json()["id"])


def page(client: Client, address: str) -> str:
    return words(html.unescape(client.get(address, headers={"accept": "text/html"}).content.decode()))


def test_a_watch_is_stored_as_a_kind_of_its_own_with_what_it_leaves_unused(sender: SendingClient) -> None:
    run = stored(sender)
    assert (run.kind, run.model, run.state, run.exit_status) == (RunKind.WATCH, "train.py", "finished", 0)
    assert (run.current_batch_size, run.current_waste_bytes, run.limit_bytes) == (64, 60 * GIB, 80 * GIB)
    assert (run.largest_batch_size, run.recommended_batch_size, run.device_count) == (None, None, 1)
    assert run.printed_headline == "75.0 % of 80.0 GiB never used."


def test_the_page_says_what_the_terminal_said(sender: SendingClient, alice_client: Client) -> None:
    found = make_watched()
    shown = page(alice_client, stored(sender).get_absolute_url())
    assert "train.py: 75.0 % of 80.0 GiB never used." in shown
    assert "Watched 400 steps; the command ended with exit status 0." in shown
    assert "Waiting for data: 5.0 % of the time." in shown
    fits = found.report.fitting_batch_size
    assert f"Batch size 64 was used; about {fits} would fit, estimated from this run's own peak" in shown
    assert "memorymark tune -- python train.py" in shown
    assert "Memory by step" in shown
    assert "Why it ended" not in shown


def test_the_page_of_one_that_died_says_why_and_where_its_error_is(sender: SendingClient, alice_client: Client) -> None:
    run = stored(sender, error=FULL)
    shown = page(alice_client, run.get_absolute_url())
    assert LATE in shown
    assert "It asked for 2.0 GiB; 1.0 GiB of 80.0 GiB were free." in shown
    assert f"Its error stayed on {HOST}" in shown
    assert "Log torch.cuda.max_memory_allocated()" in shown
    assert "OutOfMemoryError" not in shown
    assert describe_end(run, run.state) == LATE


def test_the_page_of_one_that_grows_says_when_its_memory_ends(sender: SendingClient, alice_client: Client) -> None:
    shown = page(alice_client, stored(sender, grows_bytes=MIB).get_absolute_url())
    assert "Memory grows by 1.0 MiB a step, and will end at about step" in shown
    assert "Something is kept from step to step" in shown


def test_the_history_shows_how_it_ended_and_what_was_used(sender: SendingClient, alice_client: Client) -> None:
    stored(sender), stored(sender, error=FULL), stored(sender, status=130)
    shown = page(alice_client, "/runs/?kind=watch&columns=run,state,kind,memory,unused")
    assert shown.count("watch 20.0 GiB of 80 GiB 60.0 GiB 75.0 %") == 3
    assert [word in shown for word in ("● finished", "✕ died", "⊘ stopped")] == [True] * 3


def test_what_it_leaves_unused_counts_for_its_person_and_device_once_it_is_trusted(
    sender: SendingClient, alice: User
) -> None:
    run = stored(sender)
    _sent(sender, make_watched_on_cpu().to_dict())
    assert settings_measured_since(run.created_at) == []
    trust_give(by=make_user("boss"), host=HOST)
    (counted,) = settings_measured_since(run.created_at)  # of a CPU nothing is known to be unused
    assert (counted.person, counted.device_id, counted.training) == ("alice", run.device_id, "train.py")
    assert (counted.unused_bytes, counted.limit_bytes, counted.is_own) == (60 * GIB, 80 * GIB, True)


def test_the_api_lists_and_shows_it_and_starts_none(sender: SendingClient, alice_client: Client) -> None:
    run = stored(sender)
    (listed,) = alice_client.get("/api/v1/runs/?kind=watch").json()["results"]
    assert (listed["id"], listed["kind"], listed["current_waste_bytes"]) == (run.pk, "watch", 60 * GIB)
    shown = alice_client.get(f"/api/v1/runs/{run.pk}/").json()["result"]
    assert (shown["report"]["peak_bytes"], shown["headline"]) == (20 * GIB, run.printed_headline)
    refused = alice_client.post("/api/v1/runs/", {"kind": "watch", "model": "bert"}, "application/json")
    assert (refused.status_code, "memorymark watch --report-to" in refused.json()["detail"]) == (400, True)
    assert alice_client.post(f"/api/v1/runs/{run.pk}/clone/", {}, "application/json").status_code == 409
    assert Run.objects.count() == 1


def test_a_document_with_nonsense_is_refused_by_its_field_and_changes_nothing(sender: SendingClient) -> None:
    document = make_watched().to_dict()
    document["process"]["peak_bytes"] = 81 * GIB
    answer = sender.send_result(body_of(document))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"], error["claimed"]) == (422, "/process/peak_bytes", 81 * GIB)
    del document["process"]["samples"]
    answer = sender.send_result(body_of(document))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/process.samples")
    assert not Run.all_runs.exists()


def test_one_that_was_announced_has_a_live_page(sender: SendingClient, alice_client: Client) -> None:
    key, spec = make_run_key(), make_watched().spec.to_dict()
    assert sender.begin(key, kind="watch", spec=spec).status_code == 201
    run = Run.objects.get()
    assert "Watching train.py" in page(alice_client, run.get_absolute_url())
    document = json.loads(body_of(make_watched().to_dict(), key))
    assert sender.send_result(json.dumps(document).encode()).json()["id"] == run.pk
