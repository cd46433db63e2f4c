"""Every run says first what it is at or what was found, in a short sentence, with one next step in green."""

import re
import time
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.models import Run, RunKind, State
from analysis.runs import services
from analysis.runs.marks.share_links import share_link_create
from engine.describe.result import WORDS_MOST
from engine.facts.result import Boundary, Reason, RunResult
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_card, make_claimed_run, make_result, make_result_that_does_not_fit, make_spec
from tests.factories.pages import finished, page, words
from tests.factories.speeds import (
    make_bound_result,
    make_kept_result,
    make_result_out_of_time,
    make_timed_result,
    make_unmeasurable_result,
)
from tests.factories.tuned import COMMAND, not_compared, tuned

pytestmark = pytest.mark.django_db


def green_in(html: str) -> list[str]:
    """The words of each green button of a page, outside of its frame."""
    main = html[html.index("<h1") : html.index("</main>")]
    return re.findall(r'class="button button-go"[^>]*>([^<]*)<', main)


def headline_in(html: str) -> str:
    said = re.search(r"<h1>(.*?)</h1>", html, re.DOTALL)
    assert said is not None
    return re.sub(r"<[^>]+>", "", said[1])


def check(result: RunResult, **boundary: Any) -> RunResult:
    bound = replace(result.boundary, reason=Reason.ONE_SIZE, **boundary)
    return replace(result, spec=make_spec(check_batch_size=8), boundary=bound, recommended=None)


def stopped() -> RunResult:
    return replace(make_result_that_does_not_fit(), probes=(), boundary=Boundary(None, False, None, Reason.TIME_BUDGET))


RESULTS = {
    "measured": (make_timed_result, "Copy the settings"),
    "bound": (make_bound_result, "Copy the settings"),
    "kept": (make_kept_result, "See what else may help"),
    "not certified": (
        lambda: replace(make_result(), boundary=Boundary(8, False, 9, Reason.SIZE_LIMIT, "INT_MAX", 5)),
        "Copy the settings",
    ),
    "not measurable": (make_unmeasurable_result, "Time again"),
    "out of time": (make_result_out_of_time, "Give it more time"),
    "nothing in time": (stopped, "Give it more time"),
    "does not fit": (make_result_that_does_not_fit, "See what to change"),
    "does not fit, and why no speeds": (
        lambda: replace(make_result_that_does_not_fit(), speed=make_unmeasurable_result().speed),
        "See what to change",
    ),
    "check fits": (lambda: check(make_result(), certified=False, refused_batch_size=None), "Run again"),
    "check fails": (
        lambda: check(make_result_that_does_not_fit(), refused_batch_size=8),
        "See what to change",
    ),
}


def test_a_model_of_which_only_the_limit_was_wanted_has_its_speeds_compared_next(alice_client: Client) -> None:
    card = make_card()
    form = {"kind": "measurement", "model": "bert", "precision": "fp32", "optimizer": "adamw", "limit_only": "1"}
    alice_client.post("/runs/new/", {**form, "current_batch_size": "4", "device": card.pk})
    assert Run.objects.get().spec["compare_speed"] is False
    spec = make_spec(compare_speed=False)
    run = finished(replace(make_unmeasurable_result(), spec=spec), card, compare_speed=False)
    assert green_in(page(alice_client, run)) == ["Compare speeds"]
    only = re.search(r'name="only" value="(\w+)">Compare speeds', page(alice_client, run))
    alice_client.post(f"/runs/{run.pk}/repeat/", {"only": only[1] if only else ""})
    again = Run.objects.latest("pk")
    assert (again.takes_over_id, again.spec["compare_speed"]) == (run.pk, True)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_of_a_model_has_a_short_sentence_and_one_green_button(alice_client: Client, name: str) -> None:
    make, button = RESULTS[name]
    html = page(alice_client, finished(make()))
    assert green_in(html) == [button]
    assert len(headline_in(html).split()) <= WORDS_MOST


@pytest.mark.parametrize(
    ("result", "compares", "name", "button"),
    [
        (make_timed_result(), True, "train", "Copy the settings"),
        (make_unmeasurable_result(), True, "train", "Time again"),
        (not_compared(), False, "train", "Compare speeds"),
        (not_compared(), False, None, "Compare speeds"),
        (make_unmeasurable_result(), True, None, "Copy the command to time again"),
        (make_result_that_does_not_fit(), True, "train", "Run again"),
    ],
)
def test_a_result_of_ones_own_script_has_a_short_sentence_and_one_green_button(
    alice_client: Client, result: RunResult, compares: bool, name: str | None, button: str
) -> None:
    spec = TuneSpec(COMMAND, current_batch_size=4, compare_speed=compares, name=name)
    html = page(alice_client, tuned(result, spec))
    assert green_in(html) == [button]
    assert len(headline_in(html).split()) <= WORDS_MOST


def test_what_no_run_here_has_is_not_shown_of_ones_own_script(alice_client: Client) -> None:
    spec = TuneSpec(COMMAND, current_batch_size=4, compare_speed=False, name="train")
    text = words(page(alice_client, tuned(not_compared(), spec)))
    assert "not measured" not in text.split("Probes")[0]
    assert "“Compare speeds” starts it again and times your size and others in turns." in text
    assert "None is recommended: the speeds were not compared." in text


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.INTERRUPTED])
def test_a_run_without_a_result_has_a_short_sentence_and_one_green_button(alice_client: Client, state: State) -> None:
    run = make_claimed_run()
    Run.objects.filter(pk=run.pk).update(state=state, error_message="it ended")
    html = page(alice_client, run)
    assert green_in(html) == ["Run again"]
    assert len(headline_in(html).split()) <= WORDS_MOST
    assert "the run " in headline_in(html)


def test_a_guest_of_a_link_has_the_copy_button_alone(alice_client: Client, client: Client, alice: User) -> None:
    run = finished(make_timed_result())
    Run.objects.update(requested_by=alice)
    _, secret = share_link_create(run_id=run.pk, by=alice, days=7)
    html = client.get(f"/share/{secret}/").content.decode()
    assert green_in(html) == ["Copy the settings"]
    assert "Run again" not in html


def test_the_title_says_what_is_going_on_and_one_time_is_left(alice_client: Client) -> None:
    run = make_claimed_run()
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="timing")
    progress = {"round": 4, "rounds_expected": 9, "ends_at": time.time() + 190}
    services.attempt_set(run_id=run.pk, token=run.token, progress=progress)
    html = page(alice_client, run)
    text = words(html)
    assert "<h1>Finding the batch size of BERT tiny</h1>" in html
    assert "About 3 min left" in text
    assert "round 4 of about 9" in text
    assert text.count(" left") == 1


@pytest.mark.parametrize(
    ("kind", "spec", "title"),
    [
        (RunKind.COMMAND, {}, "Finding the batch size of "),
        (RunKind.MEASUREMENT, {"check_batch_size": 1_024}, "Checking whether batch 1,024 of BERT tiny fits"),
    ],
)
def test_each_kind_of_run_has_its_title(alice_client: Client, kind: RunKind, spec: dict[str, int], title: str) -> None:
    run = make_claimed_run()
    own = {"command": ["python", "train.py"]} if kind is RunKind.COMMAND else {}
    Run.objects.filter(pk=run.pk).update(kind=kind, spec={**run.spec, **spec, **own})
    assert f"<h1>{title}" in page(alice_client, run)


def test_a_live_page_offers_to_notify(alice_client: Client) -> None:
    html = page(alice_client, make_claimed_run())
    assert "data-notify" in html
    assert 'href="/account/notifications/"' in html
