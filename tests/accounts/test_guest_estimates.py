"""MEMORYMARK_GUEST_ESTIMATES: everybody may ask for stored estimates, and for nothing else."""

import json
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from analysis.models import GpuPrice, Run
from analysis.runs import services
from engine.estimate.gpus import gpus
from memorymark_site.env import Rate
from tests.factories import make_measured_run, make_user
from tests.factories.estimates import make_stored_estimate
from tests.factories.pages import words

pytestmark = pytest.mark.django_db

PATH, QUESTION = "/estimates/", "?model=bert&gpu=a10&current_batch_size=16"
SECRETS = ("alice", "paper-7", "do not tell", "shelf-3", "Mr. X", "$0.01", "calibrated", "/runs/")
CLOSED = ["/", "/runs/", "/matrix/", "/compare/", "/help/", "/what-to-change/", "/fleet/", "/trend/"]


@pytest.fixture
def asking(settings) -> Client:
    """A person without an account, on a server that answers them."""
    settings.GUEST_ESTIMATES = True
    return Client(headers={"accept": "text/html"})


def test_without_the_setting_the_page_is_the_login(client: Client) -> None:
    make_stored_estimate()
    assert client.get(PATH + QUESTION)["Location"].startswith("/login/?next=/estimates/")


def test_a_guest_is_answered_and_may_share_the_address(asking: Client) -> None:
    make_stored_estimate()
    response = asking.get(PATH + QUESTION)
    assert response.status_code == 200
    assert "<h1>Up to 89 fit an A10; the default 16 leaves 82 % unused.</h1>" in response.content.decode()
    assert response["Cache-Control"] == "public, max-age=60"
    assert "Cookie" in response["Vary"]
    assert not response.cookies


def test_nothing_of_the_lab_is_in_an_answer(asking: Client, alice) -> None:
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=0.01, source="offer of Mr. X", valid_from="2026-01-02")
    made = {"id": "a10", "name": "NVIDIA A10", "total_bytes": 2**34, "context_bytes": 0, "calibrated": True}
    for run in (make_stored_estimate("all"), make_stored_estimate(changes={"gpu": made})):
        Run.objects.filter(pk=run.pk).update(requested_by=alice)
        services.run_annotate(run_id=run.pk, by=alice, name="paper-7", note="do not tell", tags=["shelf-3"])
    make_measured_run()
    for path in (PATH, PATH + QUESTION, f"{PATH}?model=bert&gpu=all", f"{PATH}?model=gpt2&gpu=a10"):
        text = asking.get(path).content.decode()
        assert [secret for secret in SECRETS if secret in text] == [], path


def test_own_configs_and_limits_answer_nobody(asking: Client) -> None:
    config = Path("engine/catalog/configs/bert.json")
    text = config.read_text() if config.exists() else json.dumps({"model_type": "bert"})
    assert asking.get(PATH, {"model": "config", "config": text}).status_code == 400
    make_stored_estimate(memory_limit_bytes=2**33)
    assert "No estimate is stored" in words(asking.get(PATH + QUESTION).content.decode())


@pytest.mark.parametrize("path", CLOSED)
def test_every_other_address_stays_closed(asking: Client, path: str) -> None:
    response = asking.get(path)
    assert response.status_code in (302, 401)
    if response.status_code == 302:
        assert response["Location"].startswith("/login/")


def test_the_api_stays_closed(asking: Client) -> None:
    for path in ("/api/v1/estimates/", "/api/v1/matrix/", "/metrics"):
        assert Client().get(path).status_code == 401, path


def test_the_run_of_an_answer_stays_closed(asking: Client) -> None:
    run = make_stored_estimate()
    for rest in ("", "export.json", "advice/", "charts/memory.svg"):
        assert asking.get(f"{run.get_absolute_url()}{rest}").status_code == 302


def test_a_guest_starts_nothing(asking: Client) -> None:
    assert asking.post(PATH, {"model": "bert", "gpu": "a10"}).status_code == 302
    page = asking.get(f"{PATH}?model=gpt2&gpu=all").content.decode()
    assert 'method="post"' not in page
    assert "People with an account here can add it." in words(page)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("query", "place", "said"),
    [
        ("?model=brt", 'id="id_model_error"', "'brt' is not in the catalogue; did you mean bert"),
        ("?gpu=a11", 'id="id_gpu_error"', "'a11' is not in the catalogue; did you mean a10"),
        ("?precision=fp12", 'id="id_precision_error"', "must be one of fp32"),
        ("?current_batch_size=x", 'id="id_current_batch_size_error"', "Enter a whole number"),
        ("?nonsense=1", 'id="query-problems"', "<code>nonsense</code>: there is no such parameter here"),
        ("?model=bert&model=gpt2", 'id="query-problems"', "<code>model</code>: given 2 times; it takes one value"),
    ],
)
def test_nonsense_gets_a_page_that_says_what_is_wrong_with_which_parameter(
    asking: Client, query: str, place: str, said: str
) -> None:
    response = asking.get(PATH + query)
    assert response.status_code == 400
    text = unescape(response.content.decode())
    assert "Not answered: 1 parameter to correct." in words(text)
    assert said in text.partition(place)[2][:600]


def test_too_many_questions_are_refused_for_a_while(asking: Client, settings) -> None:
    settings.THROTTLES = {**settings.THROTTLES, "guest": Rate(2, 60.0)}
    make_stored_estimate()
    assert [asking.get(PATH + QUESTION).status_code for _ in range(3)] == [200, 200, 429]
    refused = asking.get(PATH + QUESTION)
    assert 0 < int(refused["Retry-After"]) <= 60
    assert "Up to 89" not in refused.content.decode()
    assert asking.get(PATH).status_code == 200, "the form itself asks nothing"


def test_an_account_without_a_role_asks_as_a_guest_does(asking: Client) -> None:
    make_stored_estimate()
    asking.force_login(make_user("nora", None))
    assert "Up to 89" in asking.get(PATH + QUESTION).content.decode()
    assert asking.get("/runs/").status_code == 403


def test_all_gpus_are_counted_as_for_people_who_are_signed_in(asking: Client) -> None:
    make_stored_estimate("all")
    assert f"All {len(gpus())} GPUs fit the default 16" in asking.get(f"{PATH}?model=bert&gpu=all").content.decode()
