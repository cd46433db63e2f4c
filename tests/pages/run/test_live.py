"""The page of a run that goes on: what it shows, what a poll brings, how often it is asked for."""

import re
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from analysis.models import Run, RunLog
from analysis.pages.run.live import Seen, poll_seconds
from analysis.runs import services
from analysis.runs.services import Lease, LogLine
from analysis.workers.attempt_events import AttemptEvents
from engine.describe.time_left import TimeLeft
from engine.text.units import MIB
from tests.engine.questions.answers.answers import originals
from tests.factories import (
    FACTS,
    make_claimed_run,
    make_device,
    make_probe,
    make_refusal,
    make_result,
    make_result_that_does_not_fit,
    make_run,
)
from tests.factories.pages import finished, page, poll, prior_estimate, seen_on, words

pytestmark = pytest.mark.django_db


def measure(run: Run, *sizes: int) -> None:
    for sequence, size in enumerate(sizes, start=1):
        services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(size), sequence=sequence)


def say(run: Run, message: str, sequence: int) -> None:
    lines = [LogLine("info", message)]
    services.log_add(run_id=run.pk, token=run.token, lines=lines, first_sequence=sequence)


def test_a_running_run_shows_phase_probes_and_log(alice_client: Client) -> None:
    run = make_claimed_run()
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="searching")
    measure(run, 16)
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_refusal(32), sequence=2)
    lines = [LogLine("warning", "batch 32 <b>ran</b> out")]
    services.log_add(run_id=run.pk, token=run.token, lines=lines, first_sequence=1)
    text = page(alice_client, run)
    assert "Searching for the largest batch size" in words(text)
    assert "16 ✓ fits , today 1.6 GiB 32.0" in words(text)
    assert "32 ✕ out of memory – –" in words(text)
    assert 'class="log-warning"' in text
    assert "&lt;b&gt;ran&lt;/b&gt;" in text


def test_the_curve_grows_with_the_probes(alice_client: Client) -> None:
    run = make_claimed_run()
    assert "The chart appears with the first batch size that fits." in words(page(alice_client, run))
    measure(run, 4, 8)
    text = page(alice_client, run)
    assert len(re.findall(r'class="dot"', text)) == 2
    assert "Peak memory goes from 400.0 MiB at batch 4 to 800.0 MiB at batch 8." in words(text)


def expect(run: Run, estimate: dict[str, Any]) -> None:
    """As the supervisor stores what the engine tells it: first the device, then the estimate."""
    events = AttemptEvents(Lease(run_id=run.pk, token=run.token))
    events.add_facts(device=FACTS.to_dict(), environment={"torch": "0.0"})
    events.store()
    events.add_facts(estimate=estimate)
    events.store()


def test_the_estimate_stands_beside_what_is_measured(alice_client: Client) -> None:
    run = make_claimed_run()
    expect(run, prior_estimate(at_4=390 * MIB, at_8=810 * MIB))
    measure(run, 4)
    text = page(alice_client, run)
    assert "Estimated before the run: up to 8 samples, 7 with the margin." in words(text)
    assert "4 ✓ fits 400.0 MiB 390.0 MiB 8.00" in words(text)
    assert 'class="trace line-estimated is-estimate"' in text
    assert "limit 1 GiB" in words(text)


def test_an_estimate_of_another_version_does_not_break_the_page(alice_client: Client) -> None:
    run = make_claimed_run()
    expect(run, {"schema": 99})
    assert "Estimated before the run" not in words(page(alice_client, run))


def test_a_poll_that_brings_nothing_new_is_empty(alice_client: Client) -> None:
    run = make_claimed_run()
    seen = seen_on(page(alice_client, run))
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="")
    assert poll(alice_client, run, seen).status_code == 204


def test_a_poll_after_a_probe_brings_it_into_its_place_and_leaves_the_rest(alice_client: Client) -> None:
    run = make_claimed_run()
    seen = seen_on(page(alice_client, run))
    measure(run, 8)
    text = poll(alice_client, run, seen).content.decode()
    assert '<table class="probes" id="live-probes" hx-swap-oob="true">' in text
    assert 'id="live-curve" hx-swap-oob="true"' in text
    assert [part for part in ("<main", 'id="live-state"', 'id="log-lines"') if part in text] == []


def test_a_poll_adds_new_lines_to_the_log_and_sends_no_old_one(alice_client: Client) -> None:
    run = make_claimed_run()
    say(run, "the first line", 1)
    seen = seen_on(page(alice_client, run))
    say(run, "the second line", 2)
    text = poll(alice_client, run, seen).content.decode()
    assert 'hx-swap-oob="beforeend"' in text
    assert "the second line" in text
    assert "the first line" not in text


def test_a_new_attempt_begins_a_new_log(alice_client: Client) -> None:
    run = make_claimed_run()
    say(run, "of the first attempt", 1)
    seen = seen_on(page(alice_client, run))
    services.run_fail(run_id=run.pk, token=run.token, code="host_lost", message="gone")
    services.run_claim(device=run.device, owner="another")
    text = poll(alice_client, run, seen).content.decode()
    assert '<ol id="log-lines" hx-swap-oob="true">' in text
    assert "The log is still empty." in text


def test_a_state_is_told_once_and_not_with_every_poll(alice_client: Client) -> None:
    run = make_claimed_run()
    seen = seen_on(page(alice_client, run))
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="soaking")
    text = poll(alice_client, run, seen).content.decode()
    assert 'id="live-state" hx-swap-oob="true"' in text
    assert poll(alice_client, run, seen_on(text)).status_code == 204


def test_polling_stops_and_the_page_reloads_when_the_run_is_over(alice_client: Client) -> None:
    response = poll(alice_client, finished(make_result()))
    assert response.status_code == 286
    assert response.headers["HX-Refresh"] == "true"


def test_polling_slows_down_while_nothing_happens(alice_client: Client) -> None:
    assert [poll_seconds(idle) for idle in (0, 9, 45, 200, 3600)] == [1, 1, 2, 5, 15]
    run = make_claimed_run()
    seen = seen_on(page(alice_client, run))
    two_minutes_ago = timezone.now() - timedelta(minutes=2)
    Run.objects.update(created_at=two_minutes_ago, started_at=two_minutes_ago)
    text = poll(alice_client, run, seen).content.decode()
    assert 'hx-trigger="every 5s, shown"' in text
    assert "hx-swap-oob" not in text


def test_a_line_in_the_log_makes_polling_quick_again(alice_client: Client) -> None:
    run = make_claimed_run()
    say(run, "long ago", 1)
    long_ago = timezone.now() - timedelta(hours=1)
    Run.objects.update(created_at=long_ago, started_at=long_ago)
    RunLog.objects.update(recorded_at=long_ago)
    assert 'hx-trigger="every 15s, shown"' in page(alice_client, run)
    say(run, "now", 2)
    assert 'hx-trigger="every 1s, shown"' in page(alice_client, run)


@pytest.mark.parametrize("text", ["", "x", "1.2", "1.2.3.4.5.-6", "1.2.3.4.5.99999999999", "²." * 5 + "1"])
def test_a_poller_that_talks_nonsense_has_seen_nothing(text: str) -> None:
    assert Seen.of(text) == Seen()
    assert Seen.of("1.2.3.4.5.6") == Seen(1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("probes", [1, 29])
def test_a_poll_asks_the_database_as_often_for_many_probes_as_for_one(
    alice_client: Client, django_assert_num_queries: Any, probes: int
) -> None:
    run = make_claimed_run()
    measure(run, *range(1, probes + 1))
    # session, user, her rights (2), run, attempt, probes, log, how long runs like it took
    with django_assert_num_queries(9):
        response = poll(alice_client, run)
    with django_assert_num_queries(8):
        assert poll(alice_client, run, seen_on(response.content.decode())).status_code == 204


def test_a_poll_tells_a_waiting_run_that_it_moved_up(alice_client: Client) -> None:
    device = make_device()
    ahead, run = make_run(device), make_run(device)
    seen = seen_on(page(alice_client, run))
    assert poll(alice_client, run, seen).status_code == 204
    services.runs_cancel(run_ids=[ahead.pk])
    assert "Waiting: next" in poll(alice_client, run, seen).content.decode()


def test_a_worker_that_is_not_heard_of_is_said(alice_client: Client) -> None:
    run = make_claimed_run()
    seen = seen_on(page(alice_client, run))
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=50))
    assert "No sign of life from its worker for 50 s" in poll(alice_client, run, seen).content.decode()


def earlier(seconds: int, **spec: Any) -> Run:
    run = finished(make_result(), make_device(f"host {Run.objects.count()}"), **spec)
    Run.objects.filter(pk=run.pk).update(started_at=F("finished_at") - timedelta(seconds=seconds))
    return run


def test_the_time_left_is_one_figure_read_off_three_runs_like_it(alice_client: Client) -> None:
    for seconds in (100, 200):
        earlier(seconds)
    earlier(900, sequence_length=16)  # another workload tells nothing
    run = make_claimed_run(make_device())
    assert "estimating how long this takes" in words(page(alice_client, run))
    earlier(150)
    html = page(alice_client, run)
    assert "About 2 min left" in words(html)
    assert 'title="3 earlier runs with these settings on such a device took 1 min 40 s to 3 min 20 s."' in html


def test_a_run_that_takes_longer_than_those_before_is_given_no_end(alice_client: Client) -> None:
    for seconds in (10, 20, 30):
        earlier(seconds)
    run = make_claimed_run(make_device())
    assert re.search(r"About (15|20) s left", words(page(alice_client, run)))
    Run.objects.filter(pk=run.pk).update(started_at=timezone.now() - timedelta(seconds=60))
    assert "Longer than expected" in words(page(alice_client, run))


def test_a_log_that_ran_ahead_of_the_poller_begins_anew_without_a_gap(alice_client: Client) -> None:
    run = make_claimed_run()
    say(run, "the first line", 1)
    seen = seen_on(page(alice_client, run))
    lines = [LogLine("info", f"line {number}") for number in range(2, 402)]
    services.log_add(run_id=run.pk, token=run.token, lines=lines, first_sequence=2)
    text = poll(alice_client, run, seen).content.decode()
    assert '<ol id="log-lines" hx-swap-oob="true">' in text
    assert (text.count("<li"), "line 102<" in text, "line 101<" in text) == (300, True, False)


def at_phase(run: Run, phase: str, **progress: Any) -> None:
    """As the supervisor stores it: the phase with the heartbeat, the rest beside the attempt."""
    services.run_heartbeat(run_id=run.pk, token=run.token, phase=phase)
    services.attempt_set(run_id=run.pk, token=run.token, progress=progress)


def step_now(html: str) -> str:
    marked = re.findall(r'<li class="is-now" aria-current="step">(.*?)</li>', html, re.DOTALL)
    assert len(marked) == 1
    return " ".join(re.sub(r"<[^>]+>", " ", marked[0]).split())


def test_the_phases_are_steps_and_the_current_one_is_marked_with_what_it_does(alice_client: Client) -> None:
    run = make_claimed_run(soak_steps=5)
    assert step_now(page(alice_client, run)) == "Estimate"
    at_phase(run, "estimating", stage="importing torch and transformers")
    assert step_now(page(alice_client, run)) == "Estimate importing torch and transformers"
    expect(run, prior_estimate(at_4=390 * MIB, at_8=810 * MIB))
    measure(run, 1, 8)
    at_phase(run, "searching", batch_size=9, step=2)
    assert step_now(page(alice_client, run)) == "Search 8 fits, 9 next, step 2"
    at_phase(run, "searching", batch_size=9)
    text = page(alice_client, run)
    assert "Estimate , done 8 expected" in words(text)
    assert step_now(text) == "Search 8 fits, 9 next"
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_refusal(9), sequence=3)
    at_phase(run, "soaking", batch_size=8)
    text = page(alice_client, run)
    assert "Search , done 8 fits, 9 does not" in words(text)
    assert step_now(text) == "Soak run 8 for 5 steps"
    at_phase(run, "timing", round=4, rounds_expected=9)
    assert step_now(page(alice_client, run)) == "Speeds round 4 of about 9"


def test_the_bar_never_goes_back_from_phase_to_phase(alice_client: Client) -> None:
    run = make_claimed_run()
    shown = []
    for phase in ("", "estimating", "preparing", "searching", "soaking", "curve", "timing", "finished"):
        at_phase(run, phase)
        shown.append(int(re.findall(r'<progress max="100" value="(\d+)"', page(alice_client, run))[0]))
    assert shown == sorted(shown)
    assert (shown[0], shown[-1]) == (0, 100)


def test_a_run_that_only_compares_speeds_has_no_steps_of_a_search(alice_client: Client) -> None:
    first = finished(make_result())
    again = services.run_again(run=Run.objects.get(pk=first.pk), requested_by=None, is_timing_only=True)
    text = words(page(alice_client, again))
    assert ("Prepare Speeds" in text, "Search" in text) == (True, False)


def test_a_waiting_run_has_its_steps_before_it_and_none_marked(alice_client: Client) -> None:
    text = page(alice_client, make_run(make_device()))
    assert 'class="is-later"' in text
    assert "aria-current" not in text.partition("<main")[2]
    assert "<progress" not in text


def estimate_event(largest: int) -> dict[str, Any]:
    sizes = {"largest_batch_size": largest, "safe_batch_size": largest}
    return {"event": "estimate", "estimate": {**originals()["bert_tiny"]["estimate"], **sizes}}


def probe_event(size: int) -> dict[str, Any]:
    return {"event": "probe", "probe": make_probe(size, wall_seconds=600.0).to_dict()}  # no page comes too late for it


def test_the_time_left_comes_from_two_probes_of_this_run(alice_client: Client) -> None:
    run = make_claimed_run()
    expect(run, prior_estimate(at_4=390 * MIB))
    at_phase(run, "searching", batch_size=8)
    events = AttemptEvents(Lease(run_id=run.pk, token=run.token), time_left=TimeLeft(run.spec))
    for event in ({"event": "phase", "phase": "searching"}, estimate_event(8), probe_event(1), None, probe_event(8)):
        if event is None:
            assert "estimating how long this takes" in words(page(alice_client, run))
        else:
            events.take([{"seconds": 1.0, **event}])
            events.store()
    text = words(page(alice_client, run))
    assert re.search(r"About (\d+ min )?(\d+ s )?left", text)
    assert "so far, step 3 of 7" in text
    assert alice_client.get(f"/api/v1/runs/{run.pk}/").json()["seconds_left"] > 0


def test_the_title_of_the_tab_tells_step_time_and_model_and_moves_with_the_poll(alice_client: Client) -> None:
    run = make_claimed_run()
    assert "<title>1 of 7 · BERT tiny · MemoryMark</title>" in page(alice_client, run)
    at_phase(run, "timing", round=4, rounds_expected=9, ends_at=time.time() + 107)
    text = poll(alice_client, run).content.decode()
    title = "<title>6 of 7 · 2 min left · BERT tiny · MemoryMark</title>"
    assert text.lstrip().startswith(title)
    say(run, "a line, and nothing else", 1)
    assert poll(alice_client, run, seen_on(text)).content.decode().lstrip().startswith(title)


def test_the_title_of_the_tab_tells_what_was_found(alice_client: Client) -> None:
    assert "<title>✓ 8 · BERT tiny · MemoryMark</title>" in page(alice_client, finished(make_result()))
    nothing = finished(make_result_that_does_not_fit(), make_device("another"))
    assert "<title>✕ does not fit · BERT tiny · MemoryMark</title>" in page(alice_client, nothing)
    cancelled = make_run(make_device("a third"))
    services.runs_cancel(run_ids=[cancelled.pk])
    text = page(alice_client, cancelled)
    assert "<title>⊘ cancelled · BERT tiny · MemoryMark</title>" in text
    assert "No log: it never started." in words(text)


def test_progress_alone_is_news_but_is_not_read_aloud(alice_client: Client) -> None:
    run = make_claimed_run()
    at_phase(run, "searching", batch_size=4)
    seen = seen_on(page(alice_client, run))
    at_phase(run, "searching", batch_size=4, step=2)
    text = poll(alice_client, run, seen).content.decode()
    assert 'id="live-steps" hx-swap-oob="true"' in text
    assert 'id="live-state"' not in text


def test_an_attempt_that_was_repeated_says_so_in_a_sentence(alice_client: Client) -> None:
    run = make_claimed_run()
    services.run_fail(run_id=run.pk, token=run.token, code="owner_died", message="The worker lab:1 died.")
    services.run_claim(device=run.device, owner="another")
    text = page(alice_client, Run.objects.get(pk=run.pk))
    assert "The worker lab:1 died. Another attempt started by itself." in words(text)
    assert "owner_died" not in text
