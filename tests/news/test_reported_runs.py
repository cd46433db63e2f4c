"""News of reported runs: each end is news once, and what nobody trusts contradicts nothing and steps no trend."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.models import NewsEvent, NewsKind, Run
from analysis.news.decide import news_after
from analysis.news.fan_out import dispatch_waiting
from analysis.news.messages import body_of
from analysis.runs import services
from tests.api.test_reported_events import make_silent
from tests.factories.reports import HOST, SendingClient, make_document, make_events, make_reported_run, make_run_key
from tests.news.test_decide import estimate

pytestmark = pytest.mark.django_db

ERROR = {"event": "error", "error": {"code": "workload_failed", "message": "no such layer", "exit_status": 1}}


def ends_of(run: Run) -> list[str]:
    dispatch_waiting()
    return list(NewsEvent.objects.filter(run=run).order_by("pk").values_list("kind", flat=True))


class TestEnds:
    """A run that is live, and ends in each of its ways. What is sent again is no news."""

    @pytest.fixture
    def sender(self, alice: User) -> SendingClient:
        return SendingClient(alice)

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
        stop = {"event": "error", "error": {"code": "stopped", "message": "stopped by Ctrl-C where it ran"}}
        for _ in range(2):
            sender.send_events(run.report.run_key, 4, stop)
            make_silent(run)
            services.runs_reap()
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


@pytest.fixture
def reported(alice: User) -> Any:
    """A finished reported run whose estimate called a size safe that did not fit."""
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
