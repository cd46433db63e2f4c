"""The trend page: which runs belong to it, the steps it flags, the notes people leave on them."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from analysis.lists.trend.query import newest_measured
from analysis.models import Run, TrendAcknowledgement
from analysis.runs.columns.series import SeriesKey
from engine.facts.result import Reason, RunResult
from engine.text.units import GIB, MIB
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_user
from tests.factories.history import store
from tests.factories.results import CARD, finished, finished_estimate, finished_on_day, result
from tests.pages.compare.test_compare_page import words

pytestmark = pytest.mark.django_db


def address(run: Run) -> str:
    return "/trend/" + SeriesKey.of_run(run.spec, run.device_name).address


def page(client: Client, run: Run) -> str:
    response = client.get(address(run))
    assert response.status_code == 200
    return response.content.decode()


def series(*answers: RunResult) -> list[Run]:
    """One run a day."""
    return [finished_on_day(day, answer) for day, answer in enumerate(answers)]


def grown() -> list[Run]:
    """Four runs, then four with a new torch that take 10 % more memory."""
    before, after = result(20), result(20, bytes_per_sample=GIB * 11 // 10, environment={"torch": "2.14.0"})
    return series(*[before] * 4, *[after] * 4)


def test_a_step_is_flagged_and_names_what_changed(alice_client: Client) -> None:
    runs = grown()
    text = words(page(alice_client, runs[0]))
    assert "▲ worse Peak memory at batch 20 rose by 10.0 %, from 20.0 GiB to 22.0 GiB." in text
    assert f"run {runs[3].pk} ( 2026-10-04 04:00 UTC ) and run {runs[4].pk} ( 2026-10-05 04:00 UTC )" in text
    assert "torch 2.13.0 → 2.14.0" in text


def test_a_lower_boundary_is_worse(alice_client: Client) -> None:
    runs = series(*[result(40)] * 4, *[result(36)] * 4)
    text = words(page(alice_client, runs[0]))
    assert "▼ worse Largest batch size fell by 10.0 %, from 40 to 36." in text
    assert "No recorded fact of the environment changed between them." in text


def test_three_runs_after_a_change_are_no_step_yet(alice_client: Client) -> None:
    runs = series(*[result(40)] * 4, *[result(36)] * 3)
    assert "Too few runs to distinguish a step from chance: 4 are needed on each side." in words(
        page(alice_client, runs[0])
    )


def test_a_step_is_acknowledged_with_a_note(alice: User, alice_client: Client) -> None:
    runs = grown()
    posted = {"metric": "peak", "note": "torch 2.14 keeps a workspace; accepted"}
    response = alice_client.post(f"/trend/acknowledge/{runs[4].pk}/", posted, follow=True)
    stored = TrendAcknowledgement.objects.get()
    assert (stored.run, stored.acknowledged_by) == (runs[4], alice)
    assert "Acknowledged by alice" in words(response.content.decode())
    assert "torch 2.14 keeps a workspace; accepted" in words(response.content.decode())


def test_somebody_elses_note_stays_and_the_page_says_why(alice_client: Client) -> None:
    (run,) = series(result())
    TrendAcknowledgement.objects.create(run=run, metric="peak", note="his", acknowledged_by=make_user("bob"))
    posted = {"metric": "peak", "note": "mine"}
    response = alice_client.post(f"/trend/acknowledge/{run.pk}/", posted, follow=True)
    assert "the existing note is another person’s" in words(response.content.decode())
    assert TrendAcknowledgement.objects.get().note == "his"


@pytest.mark.parametrize("posted", [{"metric": "peak", "note": "  "}, {"metric": "colour", "note": "red"}, {}])
def test_an_empty_note_or_an_unknown_figure_is_not_stored(alice_client: Client, posted: dict[str, str]) -> None:
    (run,) = series(result())
    response = alice_client.post(f"/trend/acknowledge/{run.pk}/", posted, follow=True)
    assert "The note was not saved" in words(response.content.decode())
    assert not TrendAcknowledgement.objects.exists()


def test_only_runs_with_the_same_settings_on_the_same_card_belong(alice_client: Client) -> None:
    run = finished(result())
    for other in ({"precision": "bf16"}, {"sequence_length": 64}, {"gradient_checkpointing": True}):
        finished(result(), **other)
    finished(result(card=replace(CARD, name="NVIDIA H100")))
    finished_estimate()
    assert "over time 1 run fp32" in words(page(alice_client, run))


def test_a_shared_card_and_an_uncertified_limit_are_listed_and_not_drawn(alice_client: Client) -> None:
    shared = result(card=replace(CARD, foreign_used_bytes=GIB))
    spent = result()
    spent = replace(spent, boundary=replace(spent.boundary, certified=False, reason=Reason.TIME_BUDGET))
    runs = series(result(), shared, spent)
    text = words(page(alice_client, runs[0]))
    assert f"run {runs[1].pk} , 2026-10-02 04:00 UTC : other processes used the device" in text
    assert f"run {runs[2].pk} , 2026-10-03 04:00 UTC : its limit is not certified" in text
    assert "Largest batch size over one run" in text


def test_the_peak_is_followed_at_the_largest_size_that_all_measured(alice_client: Client) -> None:
    runs = series(result(20), result(24), result(36))
    assert "Peak memory at batch 16" in words(page(alice_client, runs[0]))


def test_new_versions_are_numbered_on_the_charts_and_listed(alice_client: Client) -> None:
    newer = {"transformers": "5.24.0"}
    runs = series(result(), result(environment=newer), result(environment={**newer, "torch": "2.14.0"}))
    html = page(alice_client, runs[0])
    assert "2 2026-10-03 04:00 UTC torch 2.13.0 → 2.14.0" in words(html)
    assert re.findall(r'class="text-mark"[^>]*>(\d+)<', html)[:2] == ["1", "2"]


def timed(speed: float, low: float = 0.99, high: float = 1.01, **fields: Any) -> RunResult:
    plain = result(8, **fields)
    assert plain.largest is not None
    point = replace(
        plain.largest,
        samples_per_second=speed,
        samples_per_second_low=speed * low,
        samples_per_second_high=speed * high,
    )
    return replace(plain, largest=point, fastest=point, recommended=point)


def test_a_slower_training_is_a_step_for_the_worse(alice_client: Client) -> None:
    runs = series(*[timed(100)] * 4, *[timed(90, environment={"torch": "2.14.0"})] * 4)
    text = words(page(alice_client, runs[0]))
    assert "▼ worse Speed at batch 8 fell by 10.0 %, from 100 samples/s to 90.0 samples/s." in text
    posted = {"metric": "speed", "note": "torch 2.14"}
    alice_client.post(f"/trend/acknowledge/{runs[4].pk}/", posted)
    assert TrendAcknowledgement.objects.get().metric == "speed"


def test_a_speed_has_its_interval_as_a_bar_and_in_the_table(alice_client: Client) -> None:
    runs = series(timed(100), timed(104))
    html = page(alice_client, runs[0])
    assert len(re.findall(r'class="error-bar" d="M\d+\.\d [\d.]+L', html)) == 2
    assert "samples/s 99.0 to 101" in words(html)


def test_a_speed_without_an_interval_is_in_no_series(alice_client: Client) -> None:
    runs = series(result(), timed(100))
    text = words(page(alice_client, runs[0]))
    assert "Speed at batch 8 over one run" in text


def test_the_threshold_is_drawn_where_a_step_for_the_worse_begins(alice_client: Client) -> None:
    runs = series(*[timed(100)] * 4, *[timed(90)] * 4)
    html = page(alice_client, runs[0])
    assert "The alert threshold is 87.3 samples/s." in html  # 3 % below the level since the step
    assert "The alert threshold is 7.76." in html
    assert "The alert threshold is 8.2 GiB." in html  # memory is worse where it grows
    assert "A step for the worse is reported when the median of at least 4 runs lies beyond it: 3 %" in words(html)
    speed = html[html.index('data-chart="speed"') :]
    assert len(re.findall(r'<polyline class="alert"', speed)) == 2  # one for each level


def own_script(name: str, **columns: Any) -> Run:
    run = finished(result())
    spec = TuneSpec(("python", f"{name}.py", "{batch_size}"), name=name).to_dict()
    changed = {"kind": "command", "model": spec["model"], "spec": spec, "precision": "", "optimizer": "", **columns}
    Run.objects.filter(pk=run.pk).update(**changed)
    return Run.objects.get(pk=run.pk)


def test_an_own_script_is_listed_by_its_name_without_invented_settings(alice_client: Client) -> None:
    own_script("tagger")
    text = words(alice_client.get("/trend/").content.decode())
    assert "tagger script" in text
    assert "python tagger.py &#x27;{batch_size}&#x27; 1" in text
    assert "fp32" not in text
    assert "AdamW" not in text


def test_the_trend_of_an_own_script_holds_its_runs_also_where_its_name_is_a_models(alice_client: Client) -> None:
    runs = [own_script("bert-tiny"), own_script("bert-tiny")]
    finished(result())
    text = words(page(alice_client, runs[0]))
    assert "2 runs script python bert-tiny.py" in text
    assert "fp32" not in text


def test_without_a_query_the_series_can_be_chosen(alice_client: Client) -> None:
    assert "No run has finished yet." in words(alice_client.get("/trend/").content.decode())
    runs = series(result(), result())
    finished(result(), precision="bf16")
    html = alice_client.get("/trend/").content.decode()
    assert SeriesKey.of_run(runs[0].spec, CARD.name).address.replace("&", "&amp;") in html
    assert words(html).index("fp32 · AdamW · 128 tokens 2") < words(html).index("bf16 · AdamW")


def listed(client: Client) -> str:
    return words(client.get("/trend/").content.decode())


def test_a_listed_series_says_its_last_size_its_change_and_its_step(alice_client: Client) -> None:
    runs = series(*[result(40)] * 4, *[result(36)] * 4)
    said = listed(alice_client)
    assert f"8 36 −10.0 % from 40 worse: −10.0 % with run {runs[4].pk}" in said
    html = alice_client.get("/trend/").content.decode()
    assert 'aria-label="Largest batch size over 8 runs: from 40 to 36"' in html


def test_a_listed_series_has_the_speed_of_its_last_run_with_its_interval(alice_client: Client) -> None:
    (run,) = series(result(40))
    assert "samples/s at" not in listed(alice_client)
    point = run.result["recommended"] | {"samples_per_second": 510.0, "batch_size": 32}
    ends = {"samples_per_second_low": 500.0, "samples_per_second_high": 520.0}
    Run.objects.filter(pk=run.pk).update(result=run.result | {"recommended": point | ends})
    assert "500 to 520 samples/s at 32" in listed(alice_client)


def test_a_series_with_one_run_says_what_it_lacks_and_offers_to_run_again(alice_client: Client) -> None:
    (run,) = series(result(40))
    assert "1 40 needs a second run Run again : BERT tiny" in listed(alice_client)
    assert f'action="/runs/{run.pk}/repeat/"' in alice_client.get("/trend/").content.decode()


def test_runs_on_a_shared_device_or_without_a_certificate_are_in_no_change(alice_client: Client) -> None:
    runs = series(result(40), result(30), result(20))
    Run.objects.filter(pk=runs[1].pk).update(is_shared=True)
    Run.objects.filter(pk=runs[2].pk).update(certified=False)
    assert "3 40 needs a second run" in listed(alice_client)


def test_the_list_of_series_takes_the_same_queries_however_many(
    alice_client: Client, django_assert_num_queries: Any
) -> None:
    series(result(), result())
    with django_assert_num_queries(7):  # session, user, her rights (2), the runs, their speeds, alarm
        listed(alice_client)
    finished(result(), precision="bf16")
    with django_assert_num_queries(7):
        listed(alice_client)


def test_a_series_without_runs_says_so(alice_client: Client) -> None:
    response = alice_client.get("/trend/?model=bert&gpu=Nothing")
    assert response.status_code == 200
    assert "this device: Nothing" in words(response.content.decode())


def test_a_wrong_address_gets_a_page_that_names_its_parameter(alice_client: Client) -> None:
    response = alice_client.get("/trend/?model=bert")
    assert response.status_code == 400
    assert "<code>gpu</code>" in response.content.decode()


def test_the_database_is_asked_as_often_for_many_runs_as_for_one(
    alice_client: Client, django_assert_num_queries: Any
) -> None:
    (run,) = series(result())
    with django_assert_num_queries(9):  # session, user, her rights (2), runs of the series, runs, probes, notes, alarm
        page(alice_client, run)
    series(*[result(bytes_per_sample=GIB + MIB)] * 9)
    with django_assert_num_queries(9):
        page(alice_client, run)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's plan")
def test_without_a_choice_the_newest_runs_are_read_in_an_indexes_order():
    store(20, finished_at=timezone.now())
    plan = newest_measured(10).explain()
    assert "USING INDEX" in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan  # of all runs; that of equal moments is small
