"""The pages of what to change: the advice with its table, the forms that find it out and that measure it."""

import re

import pytest
from django.test import Client

from analysis.models import Run
from analysis.permissions import VIEWER
from tests.factories import make_device, make_measured_run, make_user
from tests.factories.estimates import make_stored_estimate
from tests.factories.pages import page, words
from tests.runs.test_validations import BF16, answered

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(client: Client) -> Client:
    client.force_login(make_user("ann"))
    return client


def test_an_answer_shows_the_smallest_change_first_and_all_that_was_tried(reader: Client) -> None:
    html = page(reader, answered())
    text = words(html)
    assert "What to change so that batch 64 fits" in text
    assert text.index("4 micro-batches of 16") < text.index("Precision: bf16 autocast, fp32 weights")
    assert "not measured" in text
    assert 'data-chart="changes"' in html


def test_ticked_rows_are_queued_from_the_page(reader: Client) -> None:
    device, run = make_device(), answered()
    response = reader.post(
        f"/runs/{run.pk}/measure-changes/", {"variant": ["as requested", BF16], "device": str(device.pk)}
    )
    assert response["Location"] == "/runs/?model=bert-tiny&kind=measurement"
    queued = Run.objects.measuring().order_by("pk")
    assert [each.precision for each in queued] == ["fp32", "bf16"]
    message = re.search(r'role="status">Queued: (.*?)</p>', reader.get(response["Location"]).content.decode())
    assert message is not None
    assert re.findall(r'href="/runs/(\d+)/"', message[1]) == [str(each.pk) for each in queued]


@pytest.mark.parametrize("body", [{"variant": [BF16]}, {"device": "any"}, {"variant": ["nonsense"], "device": "any"}])
def test_a_wrong_choice_starts_nothing_and_says_so(reader: Client, body: dict[str, object]) -> None:
    make_device()
    run = answered()
    html = reader.post(f"/runs/{run.pk}/measure-changes/", body, follow=True).content.decode()
    assert "Nothing was started" in html
    assert not Run.objects.measuring().exists()


def test_a_reader_without_the_right_to_start_sees_no_form_and_may_not_post(client: Client) -> None:
    client.force_login(make_user("bob", role=VIEWER))
    run = answered()
    assert "Measure these" not in page(client, run)
    assert client.post(f"/runs/{run.pk}/measure-changes/", {"variant": [BF16]}).status_code == 403
    assert client.post(f"/runs/{run.pk}/what-to-change/", {"batch_size": 64}).status_code == 403


def test_a_measured_run_offers_to_find_out_and_shows_what_is_known(reader: Client) -> None:
    run = make_measured_run(make_device())
    assert "Find out what to change" in page(reader, run)
    response = reader.post(f"/runs/{run.pk}/what-to-change/", {"batch_size": 64, "scope": "first"})
    made = Run.objects.estimating().get()
    assert response["Location"] == made.get_absolute_url()
    assert (made.gpu, made.spec["what_to_change"]) == ("cpu", "first")
    answer = answered(model=run.model)
    assert f"All that was tried, in run {answer.pk}" in words(page(reader, run))


def test_a_batch_size_out_of_range_queues_nothing(reader: Client) -> None:
    run = make_measured_run(make_device())
    html = reader.post(f"/runs/{run.pk}/what-to-change/", {"batch_size": 0}, follow=True).content.decode()
    assert "Nothing was started" in html
    assert not Run.objects.estimating().exists()


def test_the_page_of_a_model_and_a_device_shows_the_newest_answer(reader: Client) -> None:
    run = answered()
    text = words(reader.get("/what-to-change/?model=bert-tiny&gpu=cpu").content.decode())
    assert f"The newest answer for this model and device is run {run.pk}" in text
    assert "No changes are estimated for this model" in words(
        reader.get("/what-to-change/?model=bert&gpu=t4").content.decode()
    )


def test_the_page_starts_one_and_refuses_what_cannot_be(reader: Client) -> None:
    body = {"model": "bert", "gpu": "t4", "batch_size": "128", "scope": "single"}
    assert reader.post("/what-to-change/", body).status_code == 302
    assert Run.objects.get().spec["what_to_change"] == "single"
    assert reader.post("/what-to-change/", {**body, "batch_size": "0"}).status_code == 422
    assert reader.post("/what-to-change/", {**body, "gpu": "all"}).status_code == 422
    assert reader.get("/what-to-change/?model=nonsense").status_code == 400


def test_one_ticked_row_leads_to_its_run(reader: Client) -> None:
    device, run = make_device(), answered()
    response = reader.post(f"/runs/{run.pk}/measure-changes/", {"variant": [BF16], "device": str(device.pk)})
    assert response["Location"] == Run.objects.measuring().get().get_absolute_url()


@pytest.mark.parametrize(("today", "wanted"), [(16, 100), (89, 100), (99, 99), (150, 150)])
def test_the_size_to_ask_about_is_the_first_that_does_not_fit(reader: Client, today: int, wanted: int) -> None:
    html = page(reader, make_stored_estimate(current_batch_size=today))
    field = re.search(r'<input[^>]*name="batch_size"[^>]*>', html)
    assert field is not None
    assert f'value="{wanted}"' in field[0]
