"""`/estimates/` is a field with an answer, and says how far estimates were off from what was measured."""

import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.models import GpuPrice, Run, State
from analysis.permissions import VIEWER
from analysis.presentation.estimate_error import error_plot, groups_of
from engine.estimate.gpus import gpus
from tests.factories import make_card, make_claimed_estimate, make_run, make_user
from tests.factories.estimates import make_stored_estimate
from tests.factories.pages import words

pytestmark = pytest.mark.django_db

PATH = "/estimates/"


def asked(client: Client, status: int = 200, **question: object) -> str:
    response = client.get(f"{PATH}?{urlencode({'model': 'bert', 'gpu': 'a10', **question})}")
    assert response.status_code == status, response.content.decode()
    return response.content.decode()


def test_the_form_comes_first_and_shows_three_fields(alice_client: Client) -> None:
    html = alice_client.get(PATH).content.decode()
    assert html.index('name="current_batch_size"') < html.index("<details") < html.index("Latest estimates")
    assert html.index('name="precision"') > html.index("<details")
    assert html.count("button-go") == 1


def test_a_stored_estimate_answers_whatever_size_is_used_today(alice_client: Client) -> None:
    run = make_stored_estimate()
    text = asked(alice_client, current_batch_size=50)
    assert "<h1>Up to 89 fit an A10; your 50 leaves at least 48 % unused.</h1>" in text
    assert run.get_absolute_url() in text
    assert "<h1>Does not fit: 100 on an A10. Up to 89 fit.</h1>" in asked(alice_client, current_batch_size=100)


def test_the_newest_of_equal_estimates_answers(alice_client: Client) -> None:
    make_stored_estimate(), make_stored_estimate(changes={"safe_batch_size": 70})
    assert "<h1>Up to 70 fit an A10" in asked(alice_client)


@pytest.mark.parametrize(
    "other", [{"precision": "bf16"}, {"optimizer": "sgd"}, {"sequence_length": 64}, {"gradient_checkpointing": "on"}]
)
def test_other_settings_are_another_question(alice_client: Client, other: dict[str, object]) -> None:
    make_stored_estimate()
    text = words(asked(alice_client, **other))
    assert "Not estimated yet" in text
    assert "Stored for this model: A10 · fp32 · AdamW" in text


def test_the_default_length_given_explicitly_is_the_same_question(alice_client: Client) -> None:
    make_stored_estimate()
    assert "Up to 89" in asked(alice_client, sequence_length=128)


def test_an_estimate_under_a_memory_limit_answers_nothing_else(alice_client: Client) -> None:
    make_stored_estimate(memory_limit_bytes=8 * 2**30)
    assert "Not estimated yet" in asked(alice_client)


def test_all_gpus_are_answered_by_one_table_that_sorts_and_filters_by_the_address(alice_client: Client) -> None:
    make_stored_estimate("all")
    html = asked(alice_client, gpu="all", sort="name")
    assert f"All {len(gpus())} GPUs fit batch size 16" in html
    assert 'href="?' in html
    names = re.findall(r'<th scope="row">(.*?) <span', html.partition('class="gpus"')[2].partition("</table>")[0])
    assert names == sorted(names, key=str.lower)
    addresses = re.findall(r'href="\?([^"#]*sort=price)', html)
    assert "model=bert" in addresses[0]
    fewer = words(asked(alice_client, gpu="all", card="a100"))
    assert f"of {len(gpus())} GPUs" in fewer


def test_of_all_gpus_those_without_an_estimate_are_named(alice_client: Client) -> None:
    make_stored_estimate("a10"), make_stored_estimate("t4")
    text = words(asked(alice_client, gpu="all"))
    assert "All 2 GPUs fit batch size 16" in text
    assert "Not estimated yet for these settings:" in text
    assert "H100" in text.partition("Not estimated yet for these settings:")[2]


def test_gpus_that_cannot_run_the_settings_are_said_to_be_unable(alice_client: Client) -> None:
    make_stored_estimate("a10", precision="tf32")
    text = words(asked(alice_client, gpu="all", precision="tf32"))
    assert "T4" in text.partition("cannot run the settings:")[2]
    assert "precision" in words(asked(alice_client, 400, gpu="t4", precision="tf32"))


def test_who_reads_sees_the_labs_price(alice_client: Client) -> None:
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=0.01, source="ours", valid_from="2026-01-02")
    make_stored_estimate("all")
    assert "lowest known price: an A10, $0.01 an hour" in asked(alice_client, gpu="all")


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "nonsense"},
        {"gpu": "a100-1gb"},
        {"gpu": "%' OR 1=1"},
        {"current_batch_size": "0"},
        {"current_batch_size": "many"},
        {"image_size": "224"},
        {"gradient_checkpointing": "maybe"},
        {"memory_limit_bytes": "1"},
        {"config": "{}"},
    ],
)
def test_nonsense_is_refused_by_its_name(alice_client: Client, wrong: dict[str, str]) -> None:
    text = words(asked(alice_client, 400, **wrong))
    assert "Not answered: 1 parameter to correct." in text


def test_a_name_that_is_nearly_right_gets_the_right_one(alice_client: Client) -> None:
    assert "did you mean bert" in words(asked(alice_client, 400, model="brt"))
    assert "did you mean a10" in words(asked(alice_client, 400, gpu="a10x"))


def test_settings_that_are_right_stay_folded_above_the_answer(alice_client: Client) -> None:
    make_stored_estimate(precision="bf16")
    assert '<details class="more">' in asked(alice_client, precision="bf16")
    assert '<details class="more" open>' in asked(alice_client, 400, precision="fp64")


def test_a_missing_estimate_is_made_by_those_who_may_start_one(alice_client: Client) -> None:
    question = {"model": "bert", "gpu": "a10", "current_batch_size": "16", "precision": "bf16", "optimizer": "adamw"}
    response = alice_client.post(PATH, question)
    run = Run.objects.get()
    assert response["Location"] == run.get_absolute_url()
    assert (run.kind, run.gpu, run.precision) == ("estimate", "a10", "bf16")
    assert alice_client.post(PATH, question)["Location"] == run.get_absolute_url(), "the same one, not another"


def test_a_stored_one_is_shown_and_nothing_is_started(alice_client: Client) -> None:
    make_stored_estimate()
    location = alice_client.post(PATH, {"model": "bert", "gpu": "a10", "current_batch_size": "32"})["Location"]
    assert location == "/estimates/?model=bert&gpu=a10&current_batch_size=32"
    assert "your 32 leaves" in alice_client.get(location).content.decode()
    assert Run.objects.count() == 1


def test_one_that_is_being_made_is_linked(alice_client: Client) -> None:
    run = make_claimed_estimate(model="bert")
    assert f"Estimate {run.pk} is making it." in words(asked(alice_client))


def test_a_wrong_post_starts_nothing(alice_client: Client) -> None:
    assert alice_client.post(PATH, {"model": "bert", "gpu": "t4", "precision": "tf32"}).status_code == 422
    assert not Run.objects.exists()


def test_a_viewer_asks_and_starts_nothing(client: Client) -> None:
    client.force_login(make_user("bob", role=VIEWER))
    assert "People with the role operator can make one." in words(asked(client))
    assert client.post(PATH, {"model": "bert", "gpu": "a10"}).status_code == 403
    assert not Run.objects.exists()


def test_the_chart_of_accuracy_waits_for_three_runs(alice_client: Client) -> None:
    graded(0.01), graded(0.02)
    assert 'data-chart="errors"' not in alice_client.get(PATH).content.decode()
    graded(0.03)
    assert 'data-chart="errors"' in alice_client.get(PATH).content.decode()


def test_the_answer_takes_the_same_queries_however_many_estimates(
    alice_client: Client, django_assert_num_queries
) -> None:
    make_stored_estimate("all")
    with CaptureQueriesContext(connection) as first:
        asked(alice_client, gpu="all")
    for _ in range(3):
        make_stored_estimate("all")
        make_claimed_estimate("t4", model="bert")
    with django_assert_num_queries(len(first)):
        asked(alice_client, gpu="all")


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
