"""What can be done with a result on its page: other assumptions, charts and figures as files, pinning, comparing."""

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.models import Run
from engine.facts.result import DeviceFacts, Purpose
from engine.text.units import GIB, MIB
from tests.factories import (
    make_card,
    make_claimed_run,
    make_device,
    make_measured_run,
    make_probe,
    make_refusal,
    make_result,
    make_result_that_does_not_fit,
)
from tests.factories.pages import finished, page, prior_estimate, words
from tests.factories.speeds import (
    make_bound_result,
    make_timed_result,
    make_unmeasurable_result,
)

pytestmark = pytest.mark.django_db


def test_other_assumptions_compute_the_money_again_and_are_not_stored(alice_client: Client) -> None:
    run = finished(make_result())
    text = words(page(alice_client, run, "?price=3&hours=10&runs=20"))
    assert "Cost per run derived $15.00 was $30.00. Assumed: 10 h a run today, $3.00 an hour." in text
    assert "Saved per year derived $300.00" in text
    assert "Saves $15.00 a run" in text
    assert "other assumptions than the run’s own, which are 2 h a run, $0.60 an hour and 100 runs a year" in text
    assert "Cost per run derived $0.60 was $1.20." in words(page(alice_client, run))


def test_one_assumption_alone_leaves_the_others(alice_client: Client) -> None:
    text = page(alice_client, finished(make_result()), "?runs=7")
    assert "Saved per year derived $4.20" in words(text)
    assert re.search(r'name="hours" value="2"', text)


@pytest.mark.parametrize("query", ["?price=-1", "?price=nan", "?hours=x", "?runs=1.5", "?runs=99999999999"])
def test_a_wrong_assumption_is_marked_and_changes_nothing(alice_client: Client, query: str) -> None:
    text = page(alice_client, finished(make_result()), query)
    assert text.count('aria-invalid="true"') == 1
    assert "Cost per run derived $0.60 was $1.20." in words(text)
    assert 'id="assumptions" open' in text


@pytest.mark.parametrize("query", ["?prise=3", "?price=3&price=4"])
def test_an_assumption_that_is_none_or_stands_twice_is_named_and_changes_nothing(
    alice_client: Client, query: str
) -> None:
    text = page(alice_client, finished(make_result()), query)
    assert f"<code>{query[1:].partition('=')[0]}</code>: " in text
    assert "Cost per run derived $0.60 was $1.20." in words(text)


def test_the_estimate_is_set_against_the_measurement(alice_client: Client) -> None:
    estimate = prior_estimate(at_4=390 * MIB, at_8=820 * MIB)
    text = page(alice_client, finished(make_result(estimate=estimate)))
    assert "≈ estimate Predicted before the run: 8, exact." in words(text)
    assert "Peak memory at batch 4 390.0 MiB 400.0 MiB 2.5 % under" in words(text)
    assert 'class="trace line-estimated is-estimate"' in text


def test_an_estimate_that_nothing_fits_agrees_with_the_measurement(alice_client: Client) -> None:
    nothing = prior_estimate(at_1=1100 * MIB) | {"largest_batch_size": 0, "safe_batch_size": 0}
    run = finished(replace(make_result_that_does_not_fit(), estimate=nothing))
    text = words(page(alice_client, run))
    assert "Largest batch size does not fit does not fit the same" in text
    assert "Predicted before the run: no size fits, exact." in text
    estimated = replace(make_result_that_does_not_fit(), estimate=prior_estimate(at_1=9 * MIB))
    too_high = finished(estimated, make_device("other"))
    assert "Largest batch size 8 does not fit too high" in words(page(alice_client, too_high))


def test_nothing_to_gain_is_said_once_and_accuses_nobody(alice_client: Client) -> None:
    result = make_timed_result(0.98, 1.0, 1.02)
    html = page(alice_client, finished(replace(result, recommended=result.current)))
    text = words(html)
    assert "Nothing to gain from another batch size" in text
    assert [word for word in ("Speed-up", "Cost per run", "Change the assumptions", "$") if word in text] == []
    assert (html.count('class="bar '), html.count("bar-neutral"), html.count("bar-waste")) == (1, 1, 0)


def test_the_parts_of_a_result_have_addresses_of_their_own(alice_client: Client) -> None:
    html = page(alice_client, finished(make_result()))
    tabs = re.search(r'<nav class="tabs.*?</nav>', html, re.DOTALL)
    assert tabs is not None
    parts = re.findall(r'class="part[^"]*" id="(\w+)"', html)
    assert (
        parts
        == re.findall(r'href="#(\w+)"', tabs[0])
        == [
            *("result", "curves", "change", "probes", "environment", "log"),
        ]
    )


def test_a_card_shows_what_each_counter_saw(alice_client: Client) -> None:
    facts = DeviceFacts("cuda:0", "cuda", "Test Card", 8 * GIB, limit_bytes=8 * GIB)
    probe = make_probe(8, peak_reserved_bytes=900 * MIB, device_used_bytes=1100 * MIB)
    text = words(page(alice_client, finished(make_result(device=facts, probes=(make_probe(4), probe)))))
    assert "allocated by tensors 800.0 MiB reserved by PyTorch&#x27;s allocator 900.0 MiB" in text
    assert "device used all processes, the context too 1.1 GiB limit memory that this run may use" in text


def test_a_cpu_says_why_it_has_one_counter(alice_client: Client) -> None:
    text = words(page(alice_client, finished(make_result())))
    assert "A CPU has no reserving allocator" in text
    assert "reserved by" not in text


def test_the_kinds_of_every_size_are_a_table(alice_client: Client) -> None:
    text = words(page(alice_client, finished(make_result())))
    assert "Bytes by kind at the peak of each size that fits; the bars are of 1 GiB" in text
    assert "4 10 B 30 B 20 B" not in text  # in the order parameters, gradients, optimizer state
    assert "4 10 B 20 B 30 B 40 B 50 B" in text


@pytest.mark.parametrize("key", ["memory", "throughput", "kinds"])
def test_a_chart_is_a_file_that_stands_alone(alice_client: Client, key: str) -> None:
    run = finished(make_result())
    response = alice_client.get(f"/runs/{run.pk}/charts/{key}.svg")
    assert response.headers["Content-Type"] == "image/svg+xml"
    assert response.headers["Content-Disposition"] == f'attachment; filename="memorymark-run-{run.pk}-{key}.svg"'
    text = response.content.decode()
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert [word for word in ("#00ff88", "#1a1a1a", "var(", "href") if word in text] == []  # ink on white
    assert f"run {run.pk}, measured" in text


def test_what_has_no_chart_has_no_file(alice_client: Client) -> None:
    waiting, unfit = make_claimed_run(make_card()), finished(make_result_that_does_not_fit())
    paths = [(waiting, "memory"), (unfit, "memory"), (unfit, "kinds"), (unfit, "nothing")]
    found = [alice_client.get(f"/runs/{run.pk}/charts/{key}.svg").status_code for run, key in paths]
    assert found == [404, 404, 404, 404]


def test_the_probes_are_a_csv_in_bytes_and_seconds(alice_client: Client) -> None:
    refusal = make_refusal(9, error_message="=1+1")
    run = finished(make_result(probes=(make_probe(8), refusal)))
    response = alice_client.get(f"/runs/{run.pk}/export.csv")
    rows = list(csv.DictReader(StringIO(response.content.decode())))
    first = ("8", "838860800", "0.5", "10", "0.5 0.5", "")
    names = ("batch_size", "peak_allocated_bytes", "step_seconds", "parameters_bytes", "timed_step_seconds")
    assert tuple(rows[0][name] for name in (*names, "peak_reserved_bytes")) == first
    assert rows[1]["error_message"] == "'=1+1"
    assert "attachment" in response.headers["Content-Disposition"]


def test_the_json_is_the_whole_run(alice_client: Client) -> None:
    run = finished(make_result())
    data = json.loads(alice_client.get(f"/runs/{run.pk}/export.json").content)
    assert (data["id"], data["state"], data["result"]["speedup"], data["tags"]) == (run.pk, "finished", 2.0, [])
    assert data["spec"]["model"] == "bert-tiny"


def test_a_baseline_is_pinned_and_unpinned_by_whoever_asked_for_the_run(alice_client: Client, alice: User) -> None:
    run = finished(make_result())
    Run.objects.update(requested_by=alice)
    text = alice_client.post(f"/runs/{run.pk}/pin/", {"pin": "1"}, follow=True).content.decode()
    assert "★ baseline" in words(text)
    assert "Unpin" in words(text)
    alice_client.post(f"/runs/{run.pk}/pin/", {"pin": "0"})
    assert not Run.objects.get().is_baseline


def test_somebody_elses_run_is_not_pinned(alice_client: Client) -> None:
    run = finished(make_result())
    assert "Pin as baseline" not in words(page(alice_client, run))
    answer = alice_client.post(f"/runs/{run.pk}/pin/", {"pin": "1"}, follow=True)
    assert "Only the person who started a run" in words(answer.content.decode())
    assert not Run.objects.get().is_baseline


def test_a_run_on_a_shared_card_is_not_pinned(root_client: Client) -> None:
    facts = DeviceFacts("cuda:0", "cuda", "Card", 8 * GIB, limit_bytes=8 * GIB, foreign_used_bytes=GIB)
    run = finished(replace(make_result(), device=facts))
    assert "Pin as baseline" not in words(page(root_client, run))
    answer = root_client.post(f"/runs/{run.pk}/pin/", {"pin": "1"}, follow=True)
    assert "not a finished measurement on an unshared card" in words(answer.content.decode())


def test_who_shares_the_card_is_named_as_far_as_the_driver_tells(alice_client: Client) -> None:
    others = ({"pid": 42, "used_bytes": 3 * GIB}, {"pid": 43, "used_bytes": None})
    facts = DeviceFacts("cuda:0", "cuda", "Card", 8 * GIB, limit_bytes=8 * GIB, foreign_processes=others)
    text = words(page(alice_client, finished(replace(make_result(), device=facts))))
    assert "Other processes on the device process 42: 3.0 GiB process 43 " in text


def test_from_a_result_one_can_go_on(alice_client: Client, alice: User) -> None:
    run = finished(make_result())
    Run.objects.update(requested_by=alice)
    text = page(alice_client, run)
    wanted = (f"/runs/{run.pk}/repeat/", f"/?from={run.pk}", "/compare/", "/trend/?", f"/runs/{run.pk}/annotate/")
    assert [address for address in wanted if f'"{address}' not in text] == []


@pytest.mark.parametrize("probes", [2, 20])
def test_a_result_asks_the_database_as_often_for_many_probes(
    alice_client: Client, django_assert_num_queries: Any, probes: int
) -> None:
    confirmed = make_refusal(probes + 1, purpose=Purpose.CONFIRM, fresh_process=True)
    run = finished(make_result(probes=(*map(make_probe, range(1, probes + 1)), confirmed)))
    page(alice_client, run)
    with django_assert_num_queries(13):  # one is whether the viewer may share it, one the newest race
        page(alice_client, run)


def test_without_a_claim_none_is_recommended_and_the_speeds_can_be_timed_again(alice_client: Client) -> None:
    html = page(alice_client, finished(make_unmeasurable_result()))
    text = words(html)
    assert "Up to 8 fit. None is recommended: other programs used 1.6 of 2 cores." in text
    assert text.count("ther programs") == 1
    assert "Time again" in text
    for absent in ("$", "Speed by batch size", "Setting to paste", "Optimal"):
        assert absent not in text.split("Probes 3")[0]
    assert "<h1>Up to 8 fit. None" in html  # no number stands in green
    assert ("bar-recommended" in html, "bar-waste" in html) == (False, True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_bound_result, "at least $300.00 interval $300.00 to"),
        (make_timed_result, "$168.35 interval $158.82 to $177.46"),
    ],
)
def test_other_assumptions_compute_the_interval_of_the_money_again(alice_client: Client, make: Any, said: str) -> None:
    text = words(page(alice_client, finished(make()), "?price=3&hours=10&runs=20"))
    assert f"Saved per year derived {said}" in text


def test_time_again_starts_a_run_that_takes_over_this_one(alice_client: Client) -> None:
    run = make_measured_run()
    response = alice_client.post(f"/runs/{run.pk}/repeat/", {"only": "timing"})
    again = Run.objects.latest("pk")
    assert response.headers["Location"] == again.get_absolute_url()
    assert (again.takes_over, again.requested_device) == (run, run.device)
    alice_client.post(f"/runs/{run.pk}/repeat/")
    assert Run.objects.latest("pk").takes_over is None


def test_sizes_that_were_timed_without_a_figure_are_one_line(alice_client: Client) -> None:
    plain = make_unmeasurable_result()
    blank = {"peak_allocated_bytes": None, "samples_per_second": None, "step_seconds": None, "memory_by_kind": None}
    timed = tuple(make_probe(size, purpose=Purpose.TIMING, **blank) for size in (2, 4, 8))
    text = words(page(alice_client, finished(replace(plain, probes=(*plain.probes, *timed)))))
    assert "3 sizes timed; no figure" in text
    assert "timed in turns" not in text
