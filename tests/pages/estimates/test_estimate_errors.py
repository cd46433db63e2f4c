"""`/estimates/`: how far estimates were off from what was measured, by GPU and family of models, over time."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from analysis.models import Run, State
from analysis.presentation.estimate_error import error_plot, groups_of
from engine.estimate.gpus import gpus
from tests.factories import make_card, make_claimed_estimate, make_run
from tests.factories.estimates import make_stored_estimate

pytestmark = pytest.mark.django_db

PATH = "/estimates/"


def graded(peak: float | None, boundary: float | None = None, *, model: str = "bert", name: str = "A10", days: int = 0):
    run = make_run(make_card(Run.objects.count(), name=name), model=model)
    Run.objects.filter(pk=run.pk).update(
        state=State.FINISHED,
        finished_at=timezone.now() - timedelta(days=days),
        device_name=name,
        estimate_peak_error=peak,
        estimate_boundary_error=boundary,
    )
    return run


def grade(peak: float, gpu: str = "A10") -> Run:
    return Run(pk=1, finished_at=timezone.now(), device_name=gpu, model="bert", estimate_peak_error=peak)


def text_of(client) -> str:
    response = client.get(PATH)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def test_the_page_lists_estimates_and_leads_to_a_new_one(alice_client):
    assert "No estimates yet." in text_of(alice_client)
    run, measured = make_claimed_estimate(), make_run(make_card())
    text = text_of(alice_client)
    assert 'href="/?kind=estimate"' in text
    assert run.get_absolute_url() in text
    assert measured.get_absolute_url() not in text
    assert 'href="/runs/?kind=estimate"' in text


def test_the_size_of_an_estimate_is_called_as_on_its_own_page(alice_client):
    make_stored_estimate(), make_stored_estimate("all")
    text = text_of(alice_client)
    label = 'data-label="Largest there, with margin"><span title="Estimated, not measured">≈ </span>89<'
    assert text.count(label) == 2
    smallest = min(gpus().values(), key=lambda gpu: (gpu.total_bytes, gpu.id))
    assert f'"Fits">{len(gpus())} of {len(gpus())} GPUs</td>' in text
    assert f'data-label="Smallest GPU that fits">{smallest.name},' in text
    assert '"Fits">A10: fits</td>' in text
    assert "safe" not in text.partition("Latest estimates</h2>")[2]


def test_with_nothing_graded_the_page_says_that_it_is_not_known(alice_client):
    graded(None)
    text = text_of(alice_client)
    assert "Unknown yet" in text
    assert "<svg class=" not in text


def test_runs_are_grouped_by_gpu_and_family(alice_client):
    graded(0.01, 0.02), graded(-0.03), graded(0.05, model="resnet", name="T4")
    text = text_of(alice_client)
    assert re.search(
        r"A10</th><td[^>]*>transformers</td><td[^>]*>2</td><td[^>]*>2\.0 %</td><td[^>]*>3\.0 % under", text
    )
    assert re.search(r"T4</th><td[^>]*>convolutional networks</td><td[^>]*>1</td><td[^>]*>5\.0 %", text)


def test_the_chart_has_a_point_for_each_run_and_its_table(alice_client):
    runs = [graded(0.01, days=30), graded(-0.02), graded(0.0, days=2)]
    text = text_of(alice_client)
    assert text.count('class="dot"') >= 2
    assert f"run {runs[1].pk}" in text
    assert "2.0 % under" in text


def test_an_estimate_is_never_graded_against_itself(alice_client):
    run = make_claimed_estimate()
    Run.objects.filter(pk=run.pk).update(state=State.FINISHED, finished_at=timezone.now(), estimate_peak_error=0.5)
    assert "Unknown yet" in text_of(alice_client)


def test_the_page_takes_the_same_queries_however_many_runs(alice_client, django_assert_max_num_queries):
    for _ in range(4):
        graded(0.01)
    with django_assert_max_num_queries(8):
        text_of(alice_client)


def test_it_is_for_who_is_signed_in_and_in_the_navigation(client, alice_client):
    assert client.get(PATH).status_code == 302
    assert f'href="{PATH}" aria-current="page"' in text_of(alice_client)


def test_typical_is_the_median_of_the_absolute_errors_and_worst_keeps_its_sign():
    (group,) = groups_of([grade(0.01), grade(-0.03), grade(0.02)])
    assert (group.typical_peak_error, group.worst_peak_error, group.typical_boundary_error) == (0.02, -0.03, None)


def test_groups_with_most_runs_come_first():
    groups = groups_of([grade(0.1, "T4"), grade(0.1), grade(0.2)])
    assert [group.gpu for group in groups] == ["A10", "T4"]


def test_without_a_grade_there_is_no_plot():
    assert error_plot([]) is None


def test_the_plots_sentence_names_the_run_that_was_farthest_off():
    assert error_plot(groups_of([grade(0.01), grade(-0.03)])).sentence.endswith("run 1: 3.0 % under.")
