"""The page of one run in each of its states, its polling, and its buttons."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run, State
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from analysis.runs.services import LogLine
from engine.facts.result import DeviceFacts
from engine.text.units import GIB
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_estimate,
    make_probe,
    make_result,
    make_result_that_does_not_fit,
    make_run,
    make_spec,
)
from tests.factories.pages import finished, page, words

pytestmark = pytest.mark.django_db


def test_a_waiting_run_says_where_it_stands(alice_client: Client) -> None:
    running = make_claimed_run()
    make_run(running.device)
    last = make_run(running.device)
    assert "Waiting: number 2 in the queue." in words(page(alice_client, last))


def test_cancel_asks_a_running_run_to_stop(alice_client: Client, alice: Any) -> None:
    run = make_claimed_run()
    Run.objects.update(requested_by=alice)
    response = alice_client.post(f"/runs/{run.pk}/cancel/", follow=True)
    assert Run.objects.get().cancel_requested
    text = response.content.decode()
    assert "Stopping the engine." in words(text)
    assert "/cancel/" not in text


def test_a_run_that_cannot_be_repeated_says_why(alice_client: Client) -> None:
    run = finished(make_result())
    run.device.enabled = False
    run.device.save()
    response = alice_client.post(f"/runs/{run.pk}/repeat/", follow=True, headers={"accept": "text/html"})
    assert Run.objects.count() == 1
    assert "takes no runs: it is disabled" in words(response.content.decode())


def test_a_result_is_told_in_order(alice_client: Client) -> None:
    text = words(page(alice_client, finished(make_result())))
    parts = (
        "Use batch size 8 : 2.00x as fast as your 4.",
        "Lost today 50.0 % of the time Your 4 trains an epoch in 2.00 times the time of 8. 60.9 % of 1 GiB is unused.",
        "Saves $0.60 a run",
        "Copy the settings",
        "certified",
        "On this CPU, limited to 1 GiB, BERT tiny trains with up to 8 samples.",
        "Today batch 4",
        "Recommended batch 8",
        "Speed-up",
        "Cost per run",
        "Saved per year",
        "per_device_train_batch_size=8",
        "Batch 8 trained 5 steps in a fresh process.",
        "Batch 9: out of memory, in a fresh process. over the limit",
        "Peak memory by batch size",
        "9 ✕ out of memory , confirmed in a fresh process",
    )
    positions = [text.find(part) for part in parts]
    assert -1 not in positions
    assert positions == sorted(positions)


def test_what_does_not_fit_shows_no_figures_and_says_what_to_try(alice_client: Client) -> None:
    text = words(page(alice_client, finished(make_result_that_does_not_fit())))
    assert "BERT tiny does not fit: even batch 1 runs out of memory." in text
    assert "Ways to make it fit" in text
    assert "Saved per year" not in text
    assert "✕ does not fit" in text
    assert "certified" not in text
    assert " 0.0 s" not in text.split("Time by part of the run")[1].split("Whole run")[0]


def test_a_shared_device_is_no_baseline(alice_client: Client) -> None:
    facts = DeviceFacts("cuda:0", "cuda", "Test Card", 8 * GIB, limit_bytes=8 * GIB, foreign_used_bytes=3 * GIB)
    text = words(page(alice_client, finished(replace(make_result(), device=facts))))
    assert "shared: 3.0 GiB by others" in text
    assert "Do not use this run as a baseline." in text


def test_a_model_that_is_no_longer_offered_is_still_shown(alice_client: Client) -> None:
    data = make_result().to_dict()
    data["spec"]["model"] = "gone"
    run = make_claimed_run()
    services.run_finish(run_id=run.pk, token=run.token, result=data)
    Run.objects.filter(pk=run.pk).update(model="gone", spec={**run.spec, "model": "gone"})
    assert "gone trains with up to 8 samples" in words(page(alice_client, run))


def fail(run: Run) -> None:
    services.run_fail(run_id=run.pk, token=run.token, code="workload_failed", message="a <kernel> broke", exit_status=1)


def cancel(run: Run) -> None:
    services.run_mark_cancelled(run_id=run.pk, token=run.token)


def interrupt(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=State.INTERRUPTED, error_message="The worker vanished.")


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (
            fail,
            (
                *(
                    "the run failed: a step raised an error.",
                    "a &lt;kernel&gt; broke",
                    "workload_failed , exit status of the engine 1",
                ),
                "Read the end",
            ),
        ),
        (cancel, ("the run was cancelled.", "It gives no result.", "Start it again")),
        (interrupt, ("the run was interrupted.", "The worker vanished.", "Check whether its host is up")),
    ],
)
def test_a_run_without_result_says_how_it_ended(
    alice_client: Client, end: Callable[[Run], None], expected: tuple[str, ...]
) -> None:
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(16), sequence=1)
    services.log_add(run_id=run.pk, token=run.token, lines=[LogLine("error", "the last output")], first_sequence=1)
    end(run)
    text = words(page(alice_client, run))
    assert [part for part in (*expected, "16 ✓ fits", "the last output", "Run again") if part not in text] == []


def every_page(client: Client) -> list[Any]:
    device = make_device()
    runs = [make_claimed_run(device)]
    services.run_finish(run_id=runs[0].pk, token=runs[0].token, result=make_result().to_dict())
    runs.append(make_claimed_run(device))
    fail(runs[1])
    runs += [make_claimed_run(device), make_run(device), make_estimate()]
    addresses = ["/", "/runs/", "/nothing/", *(run.get_absolute_url() for run in runs)]
    return [client.get(address, headers={"accept": "text/html"}) for address in addresses]


def test_no_page_names_another_host_or_carries_inline_code(root_client: Client) -> None:
    pattern = r"""(?:src|href|action)=["']?(?:https?:)?//|url\(\s*["']?https?:|\sstyle=|<style|\son\w+="|javascript:"""
    for response in every_page(root_client):
        text = response.content.decode()
        assert re.findall(pattern, text) == []
        assert re.findall(r"<script(?![^>]*(?:src=|application/json))", text) == []


def test_every_page_is_held_to_one_policy_without_exceptions(root_client: Client) -> None:
    addresses = ("/admin/", "/admin/analysis/run/", "/api/docs/", "/trend/", "/compare/?ids=1,2")
    responses = [*every_page(root_client), *(root_client.get(address) for address in addresses)]
    policies = {response.headers["Content-Security-Policy"] for response in responses}
    assert len(policies) == 1
    assert "unsafe" not in policies.pop()


def test_every_page_can_be_found_by_keyboard_and_screen_reader(root_client: Client) -> None:
    for response in every_page(root_client):
        text = response.content.decode()
        assert text.count("<h1") == 1
        assert '<html lang="en">' in text
        assert 'href="#content"' in text
        assert re.findall(r"<th(?![^>]*scope=)[ >]", text) == []
        assert re.findall(r"<svg(?![^>]*(?:role=\"img\"|aria-hidden|x=))", text) == []
        ids = re.findall(r'\sid="([^"]+)"', text)
        assert len(ids) == len(set(ids))


def test_a_run_that_asks_for_any_of_a_kind_says_so_while_it_waits(alice_client: Client) -> None:
    card = make_card()
    run = services.run_create(spec=make_spec(), place=Placement(kind="cuda"))
    assert f"Finding the batch size of BERT tiny run {run.pk} any GPU" in words(page(alice_client, run))
    assert "next, expected now" in words(page(alice_client, run))
    services.run_claim(device=card, owner="worker")
    assert f"run {run.pk} A100-SXM4-80GB" in words(page(alice_client, run))


def test_a_run_that_nothing_can_take_does_not_promise_a_start(alice_client: Client) -> None:
    run = make_run(make_card())
    Run.objects.update(requested_device=None, requested_device_class="H100")
    assert "Waiting for any H100; the start time is unknown." in words(page(alice_client, run))


def test_attempts_are_listed_once_there_is_more_than_one_to_tell_of(alice_client: Client) -> None:
    run = make_claimed_run()
    assert "Attempts" not in words(page(alice_client, run))
    services.run_fail(run_id=run.pk, token=run.token, code="host_lost", message="No sign of life.")
    services.run_claim(device=run.device, owner="second worker")
    text = words(page(alice_client, run))
    told = ("Attempts", "No sign of life. Another attempt started by itself.", "second worker")
    assert [part for part in told if part not in text] == []


def test_a_probe_of_an_earlier_attempt_is_marked(alice_client: Client) -> None:
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(4), sequence=1, is_carried=True)
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(8), sequence=2)
    assert words(page(alice_client, run)).count("carried over") == 1
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    assert words(page(alice_client, run)).count("carried over") == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("time_out", "with a larger time budget"),
        ("engine_killed", "Often the host’s memory ended"),
        ("something_new", "Run it again; if it fails in the same way"),
    ],
)
def test_a_failed_run_says_what_can_be_done_now(alice_client: Client, code: str, expected: str) -> None:
    run = make_claimed_run()
    services.measurement_add(run_id=run.pk, token=run.token, probe=make_probe(4), sequence=1)
    Run.objects.update(state=State.FAILED, error_code=code)
    text = words(page(alice_client, run))
    assert [part for part in ("Next steps", expected, "Peak memory by batch size") if part not in text] == []


def test_a_run_that_ended_before_any_probe_draws_nothing(alice_client: Client) -> None:
    run = make_claimed_run()
    cancel(run)
    text = page(alice_client, run)
    assert "It gives no result. Nothing had been measured by then." in words(text)
    assert 'class="curve' not in text
