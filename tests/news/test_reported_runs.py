"""News of reported runs: each end is news once, and what nobody trusts contradicts nothing and steps no trend."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils.timezone import now

from analysis.models import NewsEvent, NewsKind, Run
from analysis.news.decide import news_after
from analysis.news.fan_out import dispatch_waiting
from analysis.news.messages import body_of, encoded, mail_text
from analysis.news.post import send_mail
from analysis.runs import services
from tests.api.test_reported_events import make_silent
from tests.factories.reports import HOST, SendingClient, make_document, make_events, make_reported_run, make_run_key
from tests.news.test_decide import estimate

pytestmark = pytest.mark.django_db

ERROR = {"event": "error", "error": {"code": "workload_failed", "message": "no such layer", "exit_status": 1}}
STOP = {"event": "error", "error": {"code": "stopped", "message": "stopped by Ctrl-C where it ran"}}


def ends_of(run: Run) -> list[str]:
    dispatch_waiting()
    return list(NewsEvent.objects.filter(run=run).order_by("pk").values_list("kind", flat=True))


class TestEnds:
    """A run that is live, and ends in each of its ways. What is sent again is no news."""

    @pytest.fixture
    def run(self, sender: SendingClient) -> Run:
        sender.begin(key := make_run_key())
        sender.send_events(key, 0, *make_events())
        return Run.objects.get(report__run_key=key)

    def test_by_its_result(self, sender: SendingClient, run: Run) -> None:
        document = make_document(run.report.run_key)
        for _ in range(2):
            sender.send_result(document)
        assert ends_of(run) == [NewsKind.FINISHED]

    def test_by_an_error(self, sender: SendingClient, run: Run) -> None:
        for _ in range(2):
            sender.send_events(run.report.run_key, 4, ERROR)
        assert ends_of(run) == [NewsKind.FAILED]

    def test_by_a_cancel_that_the_sender_follows(self, sender: SendingClient, run: Run, alice_client: Client) -> None:
        alice_client.post(f"/runs/{run.pk}/cancel/")
        assert ends_of(run) == []
        for _ in range(2):
            sender.send_events(run.report.run_key, 4, ERROR)
        assert ends_of(run) == [NewsKind.CANCELLED]

    def test_by_a_stop_where_it_ran_and_no_second_time_by_silence(self, sender: SendingClient, run: Run) -> None:
        for _ in range(2):
            sender.send_events(run.report.run_key, 4, STOP)
            make_silent(run)
            services.runs_reap()
        assert ends_of(run) == [NewsKind.INTERRUPTED]

    @pytest.mark.parametrize("before", [(), ({"event": "log", "message": "on"},)], ids=["alone", "with a line"])
    def test_by_a_stop_that_is_said_again_and_again(self, sender: SendingClient, run: Run, before: Any) -> None:
        for _ in range(30):
            run.report.refresh_from_db()
            sender.send_events(run.report.run_key, run.report.events_received, *before, STOP)
        run.refresh_from_db()
        assert (run.state, run.report.events_received) == ("interrupted", 4 + 30 * (len(before) + 1))
        assert ends_of(run) == [NewsKind.INTERRUPTED]

    def test_by_a_stop_that_explains_a_silence(self, sender: SendingClient, run: Run) -> None:
        make_silent(run)
        services.runs_reap()
        sender.send_events(run.report.run_key, 4, STOP)
        run.refresh_from_db()
        assert (run.state, run.error_code) == ("interrupted", "stopped")
        assert ends_of(run) == [NewsKind.INTERRUPTED]

    def test_by_silence_and_then_by_its_result(self, sender: SendingClient, run: Run) -> None:
        for _ in range(2):
            make_silent(run)
            services.runs_reap()
        assert ends_of(run) == [NewsKind.INTERRUPTED]
        sender.send_result(make_document(run.report.run_key))
        assert ends_of(run) == [NewsKind.INTERRUPTED, NewsKind.FINISHED]

    def test_by_each_silence_that_something_followed(self, sender: SendingClient, run: Run) -> None:
        for _ in range(2):
            make_silent(run)
            services.runs_reap()
            sender.send_events(run.report.run_key, 4)
        assert ends_of(run) == [NewsKind.INTERRUPTED] * 2

    def test_an_end_that_was_none_is_still_described(self, sender: SendingClient, run: Run, alice: User) -> None:
        make_silent(run)
        services.runs_reap()
        sender.send_events(run.report.run_key, 4)
        run.refresh_from_db()
        event = NewsEvent.objects.get(run=run)
        assert (run.state, event.kind) == ("running", NewsKind.INTERRUPTED)
        body = body_of(event, run)
        assert "interrupted" in body["verdict"].lower()
        assert body["figures"] == {}

    def test_an_earlier_end_has_no_figures_of_the_later_result(self, sender: SendingClient, run: Run) -> None:
        make_silent(run)
        services.runs_reap()
        sender.send_result(make_document(run.report.run_key))
        found = Run.objects.with_places().get(pk=run.pk)
        interrupted, finished = (body_of(event, found) for event in NewsEvent.objects.filter(run=run).order_by("pk"))
        assert interrupted["figures"] == {}
        assert finished["figures"]["largest_batch_size"]["value"] == 8

    def test_by_a_document_that_was_never_announced(self, alice: User) -> None:
        assert ends_of(make_reported_run(alice)) == [NewsKind.FINISHED]


def body_of_end(run: Run) -> dict[str, Any]:
    return body_of(NewsEvent.objects.get(run=run), Run.objects.with_places().get(pk=run.pk))


class TestMessages:
    """Whoever reads only the message knows that another machine measured it, and whether this lab stands for it."""

    @pytest.fixture
    def run(self, alice: User) -> Run:
        return make_reported_run(alice)

    def test_the_verdict_begins_with_the_host_and_that_nobody_verified_it(self, run: Run) -> None:
        body = body_of_end(run)
        assert body["verdict"].startswith(f"Not trusted by this lab, reported from {HOST}: Up to 8 fit.")
        assert (body["origin"], body["reported_from"], body["is_trusted"]) == (f"reported from {HOST}", HOST, False)
        assert body["figures"]["largest_batch_size"] == {"value": 8, "kind": "measured", "is_trusted": False}
        assert "alice" not in json.dumps(body)

    def test_of_a_trusted_sender_it_names_the_host_alone(self, run: Run, root: User) -> None:
        services.trust_give(by=root, host=HOST)
        body = body_of_end(run)
        assert body["verdict"].startswith(f"Reported from {HOST}: Up to 8 fit.")
        assert [body["is_trusted"], *(figure["is_trusted"] for figure in body["figures"].values())].count(False) == 0

    def test_every_channel_says_so(self, run: Run) -> None:
        body, opening = body_of_end(run), f"Not trusted by this lab, reported from {HOST}: "
        assert json.loads(encoded("webhook", "id", body)) == {"delivery": "id", **body}
        assert json.loads(encoded("slack", "id", body))["text"].startswith(opening)
        assert mail_text(body).startswith(opening)
        assert "largest_batch_size: 8, measured, reported, not trusted by this lab" in mail_text(body)

    def test_a_long_name_of_a_host_cannot_hide_the_doubt_in_a_subject(self, alice: User, settings: Any) -> None:
        settings.EMAIL_HOST = "mail.lab.example"
        body = body_of_end(make_reported_run(alice, host="verified by this lab: *yes* " * 6 + "x"))
        assert send_mail("alice@lab.example", "id", body).is_delivered
        assert mail.outbox[0].subject.startswith("MemoryMark: Not trusted by this lab, reported from verified_by_")

    def test_one_that_failed_where_it_ran_says_so_too(self, alice: User) -> None:
        sender = SendingClient(alice)
        sender.begin(key := make_run_key())
        sender.send_events(key, 0, *make_events(), ERROR)
        verdict = body_of_end(Run.objects.get(report__run_key=key))["verdict"]
        assert verdict.startswith(f"Not trusted by this lab, reported from {HOST}: ")

    def test_an_event_without_a_run_has_no_origin(self) -> None:
        body = body_of(NewsEvent(kind=NewsKind.SILENT, details={"verdict": "lab: silent."}, created_at=now()), None)
        assert body["verdict"] == "lab: silent."
        assert [body[name] for name in ("origin", "reported_from", "is_trusted")] == [None] * 3


@pytest.fixture
def reported(alice: User) -> Any:
    run = make_reported_run(alice)
    Run.objects.filter(pk=run.pk).update(result={**(run.result or {}), "estimate": estimate(safe=500)})
    return Run.objects.with_places().get(pk=run.pk)


def test_it_contradicts_its_estimate_only_once_its_sender_is_trusted(reported: Run, root: User) -> None:
    assert news_after(reported) == []
    services.trust_give(by=root, host=HOST)
    reported.refresh_from_db()
    assert [event.kind for event in news_after(reported)] == [NewsKind.CONTRADICTED]


def test_the_trend_steps_by_reported_runs_only_once_their_sender_is_trusted(alice: User, root: User) -> None:
    sizes = (100, 100, 100, 100, 50, 50, 50, 50)
    runs = [make_reported_run(alice) for _ in sizes]
    for run, size in zip(runs, sizes, strict=True):
        boundary = {**run.result["boundary"], "largest_batch_size": size, "first_failed_batch_size": size + 1}
        Run.objects.filter(pk=run.pk).update(largest_batch_size=size, result={**run.result, "boundary": boundary})
    last = Run.objects.with_places().get(pk=runs[-1].pk)
    assert news_after(last) == []
    services.trust_give(by=root, host=HOST)
    last.refresh_from_db()
    assert NewsKind.STEP in {event.kind for event in news_after(last)}
