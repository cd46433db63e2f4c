"""The compare page: what it says first, what it shows, what it refuses, how often it asks the database."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from analysis.lists.comparison.query import CompareQuery
from analysis.models import Run
from analysis.pages.compare.context import compare_context
from analysis.runs import services
from engine.text.units import GIB
from tests.factories import make_claimed_run, make_device, make_run, make_spec
from tests.factories.matrix import measured, measured_on_ranks
from tests.factories.pages import finished as of_speeds
from tests.factories.pages import words
from tests.factories.results import CARD, estimate, finished, finished_estimate, result, subject, the_card
from tests.factories.speeds import make_bound_result, make_unmeasurable_result, undisturbed

pytestmark = pytest.mark.django_db
EMULATED_TOO: list[tuple[int, dict[str, Any]]] = [(20, {}), (30, {"emulate_ranks": 2})]


def page(client: Client, *runs: Run, **query: Any) -> str:
    response = client.get("/compare/", {"ids": ",".join(str(run.pk) for run in runs), **query})
    assert response.status_code == 200, response.content
    return response.content.decode()


def test_different_surroundings_are_said_before_any_figure(alice_client: Client) -> None:
    other = finished(result(environment={"torch": "2.12.1"}), carried=2)
    text = words(page(alice_client, finished(), other))
    assert text.index("Different environments.") < text.index("Results")
    assert f"2.12.1 (run {other.pk})" in text
    assert f"2 (run {other.pk})" in text


def test_equal_surroundings_are_said_too(alice_client: Client) -> None:
    text = words(page(alice_client, finished(), finished()))
    assert "Different environments" not in text
    assert "✓ Same device, capacity, driver, CUDA, torch, transformers, allocator settings" in text


def test_what_nobody_recorded_is_not_called_the_same(alice_client: Client) -> None:
    text = words(page(alice_client, finished(), finished()))
    assert "Not recorded: HIP, other users of the device." in text
    counted = result(card=replace(CARD, foreign_used_bytes=0))
    assert "Not recorded: HIP." in words(page(alice_client, finished(counted), finished(counted)))


def test_different_models_are_said_first_and_have_no_differences(alice_client: Client) -> None:
    first, other = finished(), finished(result(12, spec=make_spec(model="bert", current_batch_size=4)), model="bert")
    text = words(page(alice_client, first, other))
    assert text.index("Different models or inputs: their figures are not subtracted.") < text.index("Results")
    assert f"run {other.pk} BERT base, 128 tokens" in text
    assert [word for word in ("better", "worse", "▲ +") if word in text.split("Results", 1)[1]] == []
    assert "difference to run" not in text


def test_the_headline_says_which_run_is_ahead_and_a_pinned_run_is_marked(alice_client: Client) -> None:
    first, second = finished(), finished(result(12))
    text = words(page(alice_client, first, second))
    assert f"run {second.pk} fits the most, 12 against 8." in text
    assert f"difference to run {first.pk}" in text
    assert "★ pinned" not in text
    Run.objects.filter(pk=first.pk).update(is_baseline=True)
    assert words(page(alice_client, first, second)).count("★ pinned") == 1


def test_strategies_are_compared_by_batch_memory_and_speed_per_rank(alice_client: Client) -> None:
    single = measured(largest=40, speed=400.0)
    fsdp, ddp = (measured_on_ranks(largest=20, speed=600.0, ranks=2, strategy=each) for each in ("fsdp", "ddp"))
    text = words(page(alice_client, single, fsdp, ddp))
    assert "Different models or inputs" not in text
    assert "FSDP2 (weights, gradients and optimizer state sharded, by layer)" in text
    assert re.search(r"Recommended, of all ranks derived 40 40 ", text)
    assert re.search(r"Samples/s, recommended, per rank derived 390 286 ", text)
    assert "torch.distributed.run" not in text


def test_what_was_emulated_is_not_called_better_than_what_was_measured(alice_client: Client) -> None:
    runs = [measured_on_ranks(largest=n, ranks=2, strategy="fsdp", **emulated) for n, emulated in EMULATED_TOO]
    text = words(page(alice_client, *runs))
    assert "Peak memory by batch size measured and emulated" in text
    assert "fsdp on 2 ranks emulated, 2 of 2 ranks" in text.replace(" · ", " ")
    assert "better" not in text.partition("Results")[2]


def test_the_reason_without_a_figure_is_that_of_the_runs_own_page(alice_client: Client) -> None:
    device = make_device()
    disturbed, bound = of_speeds(make_unmeasurable_result(), device), of_speeds(make_bound_result(), device)
    unclear = of_speeds(undisturbed(make_unmeasurable_result()), device)
    text = words(page(alice_client, disturbed, bound, unclear))
    assert f"Run {disturbed.pk} Other programs used 1.6 of 2 cores." in text
    assert f"Run {bound.pk} At least 2x as fast as your 4." in text
    assert f"Run {unclear.pk} 8 is 0.80 to 13.00x as fast as your 4." in text


def test_compared_runs_differ_in_colour_whatever_their_numbers() -> None:
    runs = [subject(number).run for number in (1, 41, 281)]  # as far apart as colours, dashes and markers repeat
    heads = compare_context(runs, {}, CompareQuery((1, 41, 281)))["heads"]
    assert len({head["swatch_class"].split()[0] for head in heads}) == 3


def test_a_fact_of_a_script_that_only_programs_read_is_not_shown(alice_client: Client) -> None:
    facts = {"script_sha256": "a" * 64, "script_commit": "b" * 40}
    other = finished(result(environment={"script_sha256": "c" * 64, "script_commit": "d" * 40}))
    html = page(alice_client, finished(result(environment=facts)), other)
    assert "a" * 64 not in html
    assert "a" * 12 in html


def test_runs_that_need_care_for_the_same_reason_share_a_line(alice_client: Client) -> None:
    guesses = [finished_estimate(estimate(cards=3)) for _ in range(2)]
    text = words(page(alice_client, finished(), finished(), *guesses))
    assert text.count("It estimates 3 GPUs at once") == 1
    assert f"Runs {guesses[0].pk}, {guesses[1].pk} It estimates" in text


def test_rows_without_any_figure_are_folded_by_their_number(alice_client: Client) -> None:
    html = page(alice_client, finished_estimate(), finished_estimate())
    assert re.search(r"<summary>\d+ rows without figures</summary>", html)
    table, folded = html.split('class="pinned beside results as-cards"', 1)[1].split("</table>", 1)
    assert "Samples/s, fastest" not in table
    assert "Samples/s, fastest" in folded.split("</details>", 1)[0]
    assert "≈ 8 safe, estimated" not in table  # the safe sizes have a row of their own


def test_a_curve_that_one_run_has_alone_is_folded(alice_client: Client) -> None:
    html = page(alice_client, finished(), finished(undisturbed(make_unmeasurable_result())))
    shown, folded = re.split(r"<summary>\d+ curves? that only one run\s+has</summary>", html)
    assert "Peak memory by batch size" in shown
    assert "Speed by batch size" not in shown
    assert "Speed by batch size" in folded


def test_estimates_have_one_note_however_many(alice_client: Client) -> None:
    guesses = [finished_estimate() for _ in range(3)]
    text = words(page(alice_client, finished(), *guesses))
    assert text.count("not measured on the GPU") == 1
    assert all(str(guess.pk) in text.split("not measured on the GPU")[0] for guess in guesses)


@pytest.mark.parametrize("query", ["", "?ids={run}"])
def test_fewer_than_two_runs_are_a_choice_of_runs(alice_client: Client, query: str) -> None:
    run, other = finished(), finished(model="bert")
    html = alice_client.get(f"/compare/{query.format(run=run.pk)}").content.decode()
    ticked = re.findall(r'name="ids" value="(\d+)"( checked)?', html)
    assert {int(pk): bool(mark) for pk, mark in ticked} == {run.pk: bool(query), other.pk: False}
    assert f"run {run.pk} · BERT tiny" in words(html)


def test_the_choice_begins_with_the_run_and_those_of_its_model(alice_client: Client) -> None:
    run, like, newest = finished(), finished(), finished(model="bert")
    html = alice_client.get(f"/compare/?ids={run.pk}").content.decode()
    assert [int(pk) for pk in re.findall(r'name="ids" value="(\d+)"', html)] == [run.pk, like.pk, newest.pk]


def test_a_choice_without_any_run_says_what_to_do(alice_client: Client) -> None:
    assert "No run has finished yet." in words(alice_client.get("/compare/").content.decode())


def test_figures_stand_beside_each_other_with_their_difference(alice_client: Client) -> None:
    text = words(page(alice_client, finished(), finished(result(12, speed=50.0))))
    assert "Largest batch size 8 12 ▲ +50 % better +4" in text
    assert "▼ −48 % worse" in text
    assert "price per hour ÷ 3600 ÷ samples per second" in text


def test_another_baseline_turns_the_differences_around(alice_client: Client) -> None:
    first, second = finished(), finished(result(12))
    assert "Largest batch size 8 ▼ −33 % worse −4 12" in words(page(alice_client, first, second, baseline=second.pk))


def test_settings_that_are_equal_are_folded_away(alice_client: Client) -> None:
    runs = finished(precision="fp32"), finished(precision="bf16")
    html = page(alice_client, *runs)
    differing, folded = html.split("<summary>", 1)[0], html.rsplit("facts are the same", 1)[1]
    assert "Precision" in differing
    assert "<dt>Optimizer</dt>" in folded
    assert "Optimizer</th>" not in differing


def test_a_run_without_a_result_is_listed_with_its_state(alice_client: Client) -> None:
    failed = make_claimed_run(the_card())
    services.run_fail(run_id=failed.pk, token=failed.token, code="workload_failed", message="no loss")
    waiting = make_run(the_card())
    text = words(page(alice_client, finished(), failed, waiting))
    assert f"No result run {failed.pk} ✕ failed run {waiting.pk} ○ queued" in text


def test_a_baseline_without_a_result_is_said(alice_client: Client) -> None:
    waiting = make_run(the_card())
    text = words(page(alice_client, waiting, finished(), baseline=waiting.pk))
    assert f"Run {waiting.pk} is the baseline and has no figures" in text
    assert "better" not in text


def test_an_estimate_is_labelled_and_not_measured(alice_client: Client) -> None:
    guess = finished_estimate()
    html = page(alice_client, finished(), guess)
    assert f"Run {guess.pk}: estimated , not measured on the GPU" in words(html)
    assert "measured and estimated" in words(html)
    assert html.count("≈</span> estimate</span>") == 4


def test_charts_are_drawn_on_the_server(alice_client: Client) -> None:
    html = page(alice_client, finished(), finished(result(12)))
    assert set(re.findall(r'data-chart="(\w+)"', html)) == {"memory", "throughput", "tradeoff"}
    assert html.count('class="cross"') == 2


def test_axes_are_kept_in_the_address(alice_client: Client) -> None:
    runs = finished(), finished()
    html = page(alice_client, *runs, x="linear", y="log")
    assert "peak memory (log scale)" in html
    assert "batch size in samples (log scale)" not in html
    ids = ",".join(str(run.pk) for run in runs)
    assert f'href="?ids={ids}&amp;x=log&amp;y=log"' in html


def test_more_than_eight_runs_are_a_table_only(alice_client: Client) -> None:
    runs = [finished() for _ in range(9)]
    html = page(alice_client, *runs)
    assert "data-chart" not in html
    assert [run.pk for run in runs if f">run {run.pk}</a>".replace(">run", "run") not in html] == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("ids=1,x", "is not the number of a run"),
        ("ids=1,2", "there is no run 1, 2"),
        ("ids=1,2&z=1", "there is no such parameter here; known parameters: ids, baseline, x, y"),
        ("ids=" + ",".join(map(str, range(1, 60))), "at most 50"),
    ],
)
def test_a_wrong_address_gets_a_page_that_names_its_parameter(alice_client: Client, query: str, said: str) -> None:
    response = alice_client.get(f"/compare/?{query}")
    assert response.status_code == 400
    assert said in response.content.decode()
    assert f"<code>{'z' if 'z=' in query else 'ids'}</code>" in response.content.decode()


def test_what_was_asked_wrongly_is_shown_without_running_it(alice_client: Client) -> None:
    text = alice_client.get("/compare/", {"ids": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in text


def test_the_database_is_asked_as_often_for_eight_runs_as_for_two(
    alice_client: Client, django_assert_num_queries: Any
) -> None:
    runs = [finished() for _ in range(8)]
    with django_assert_num_queries(7):  # session, user, her rights (2), runs, carried probes, alarm
        page(alice_client, *runs[:2])
    with django_assert_num_queries(7):
        page(alice_client, *runs)


def test_the_page_can_be_read_by_keyboard_and_screen_reader(alice_client: Client) -> None:
    html = page(alice_client, finished(), finished(result(bytes_per_sample=2 * GIB)), finished_estimate())
    assert html.count("<h1") == 1
    assert re.findall(r"<th(?![^>]*scope=)[ >]", html) == []
    assert re.findall(r"<svg(?![^>]*(?:role=\"(?:img|group)\"|aria-hidden|x=))", html.split("<main")[1]) == []
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert re.findall(r"\sstyle=|<style|\son\w+=\"|<script(?![^>]*(?:src=|application/json))", html) == []
