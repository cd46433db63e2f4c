"""The matrix page: what a cell says, what is marked, what it offers where nothing is known."""

import html
import re
from datetime import date
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from analysis.models import Device, GpuPrice, MatrixCell
from engine.settings.catalog import WORKLOADS
from tests.factories import make_card, make_device, make_measured_run
from tests.factories.matrix import card, estimated, measured, measured_on_ranks

pytestmark = pytest.mark.django_db


def page(client: Client, query: str = "") -> str:
    response = client.get(f"/matrix/{query}")
    assert response.status_code == 200
    return response.content.decode()


def cell(text: str, card_name: str) -> str:
    """The words of this card's first cell."""
    found = re.search(rf'<td class="[^"]*" data-label="{re.escape(card_name)}">(.*?)</td>', text, re.DOTALL)
    assert found, card_name
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[1])).split())


def test_a_measured_cell_leads_to_its_run_with_age_headroom_and_derived_cost(alice_client: Client) -> None:
    run = measured("a10", largest=20, speed=1_000.0)
    text = page(alice_client)
    assert f'href="/runs/{run.pk}/"' in text
    assert re.search(
        r"● 20 measured, run \d+ BERT tiny on A10 up to 20, certified recommended 20, 952 samples/s "
        r"\$0\.175 a million samples measured (just now|\d+ s ago) ?, 2\.1 GiB left",
        cell(text, "A10"),
    )


def test_an_estimated_cell_looks_different_and_knows_no_speed(alice_client: Client) -> None:
    estimated("a10", "l4", largest=50)
    text = page(alice_client)
    assert 'class="cell is-estimated heat-4" data-label="A10"' in text
    assert re.match(r"≈ 48 estimated, run \d+ .*BERT tiny on A10 up to ≈ 50 ", cell(text, "A10"))
    assert "samples/s" not in cell(text, "A10")


def test_what_was_measured_stands_before_an_estimate(alice_client: Client) -> None:
    measured("a10", largest=20)
    estimated("a10", "l4", largest=50)
    assert "20 measured" in cell(page(alice_client), "A10")


def test_several_cards_have_a_column_of_their_own_beside_what_is_estimated_of_them(alice_client: Client) -> None:
    run = measured_on_ranks("a10", largest=20, ranks=8, strategy="fsdp")
    measured("a10", largest=18)
    estimated("l4", largest=50, ranks=8, strategy="fsdp")
    text = page(alice_client, "?ranks=8&strategy=fsdp")
    assert f"20 measured, run {run.pk}" in cell(text, "8 × A10")
    assert "≈ 48 estimated" in cell(text, "8 × L4")
    assert "18 measured" not in text
    assert "18 measured" in cell(page(alice_client), "A10")


def test_the_cards_that_were_measured_are_the_first_columns(alice_client: Client) -> None:
    measured("a100-40gb", largest=20)
    estimated("a10", "l4", largest=50)
    columns = re.findall(r'<th scope="col">([^<]+)<', page(alice_client))
    assert columns[:2] == ["Model", "A100 SXM4 40 GB"]


def test_an_empty_cell_offers_an_estimate_that_fills_the_form(alice_client: Client) -> None:
    measured("a10", precision="bf16")
    text = page(alice_client, "?precision=bf16")
    (address,) = re.findall(r'href="(/\?kind=estimate&amp;model=bert-tiny&amp;gpu=l4&amp;[^"]*)"', text)
    form = alice_client.get(html.unescape(address), headers={"accept": "text/html"}).context["form"]
    asked = {name: form[name].value() for name in ("kind", "model", "gpu", "precision", "optimizer")}
    assert list(asked.values()) == ["estimate", "bert-tiny", "l4", "bf16", "adamw"]


def test_what_a_card_cannot_do_is_not_offered(alice_client: Client) -> None:
    measured("a10", precision="tf32")
    text = page(alice_client, "?precision=tf32")
    assert cell(text, "T4").startswith("no tf32 : tf32 needs a CUDA GPU of compute capability 8.0")


def test_estimates_of_gpus_that_are_not_shown_are_one_click_away(alice_client: Client) -> None:
    estimated("b200")
    assert '<a href="?cards=all">show 1 more estimated</a>' in page(alice_client)
    measured("a10")
    text = page(alice_client)
    assert re.search(r'GPUs?; <a href="\?cards=all">show 1 more estimated</a>', text)
    assert "show the usual ones" in page(alice_client, "?cards=all")
    labels = re.findall(r'<label for="id_\w+">([^<]+)</label>', text)
    assert labels.count("GPUs") == 1


def test_fastest_and_cheapest_are_marked_in_words_among_measured_cards(alice_client: Client) -> None:
    measured("a10", speed=100.0)
    measured("h100-80gb", speed=400.0)
    estimated("l4", "t4")
    text = page(alice_client)
    assert "▲ fastest" in cell(text, "H100 SXM5 80 GB")
    assert "$ cheapest a million" in cell(text, "A10")
    assert text.count("▲ fastest</span>") == text.count("$ cheapest a million samples</span>") == 1


def test_a_card_without_a_price_has_no_cost_and_says_so(alice_client: Client) -> None:
    measured("rtx-3090")
    assert "no price set" in cell(page(alice_client), "RTX 3090")


def test_the_labs_price_is_used_with_its_source_and_date(alice_client: Client) -> None:
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=3.6, source="invoice 7", valid_from=date(2026, 11, 1))
    measured("a10", speed=1_050.0)
    text = page(alice_client)
    assert "$1.00 a million" in cell(text, "A10")
    assert "lab: invoice 7" in text
    assert "2026-11-01" in text


def test_a_devices_own_price_stands_before_the_catalogues(alice_client: Client) -> None:
    measured("a10", speed=1_050.0)
    Device.objects.update(price_per_hour_usd=7.2)
    assert "$2.00 a million" in cell(page(alice_client), "A10")


def test_other_settings_are_another_matrix(alice_client: Client) -> None:
    measured("a10", largest=20, mode="eval", gradient_checkpointing=True)
    assert "There are no measurements or estimates with these settings yet" in page(alice_client)
    assert "20 measured" in cell(page(alice_client, "?mode=eval&gradient_checkpointing=on"), "A10")


def test_a_card_of_the_fleet_stands_there_before_it_is_measured(alice_client: Client) -> None:
    make_card(7, name="NVIDIA Z1000")
    measured("a10")
    assert cell(page(alice_client), "Z1000") == "· not measured"


def test_all_cards_of_the_catalogue_are_shown_on_request(alice_client: Client) -> None:
    estimated("b200", "a10")
    assert 'data-label="B200' not in page(alice_client)
    assert 'data-label="B200' in page(alice_client, "?cards=all")


def test_one_choice_of_models_offers_an_estimate_on_all_gpus_with_the_pages_settings(alice_client: Client) -> None:
    measured("a10", precision="bf16")
    text = page(alice_client, "?precision=bf16")
    form = text.split('class="estimate-form"', 1)[1].split("</form>", 1)[0]
    assert sorted(re.findall(r'<option value="([^"]+)"', form)) == sorted(WORKLOADS)
    known = form.split('label="In this matrix"', 1)[1]
    assert re.findall(r'<option value="([^"]+)"', known) == ["bert-tiny"]
    hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]+)"', form))
    filled = alice_client.get("/", {**hidden, "model": "gpt2"}, headers={"accept": "text/html"}).context["form"]
    asked = [filled[name].value() for name in ("kind", "model", "gpu", "precision")]
    assert asked == ["estimate", "gpt2", "all", "bf16"]
    assert text.count("Estimate for all GPUs") == 1


def test_the_settings_are_folded_and_said_above(alice_client: Client) -> None:
    text = page(alice_client, "?precision=bf16")
    assert "<li>bf16 · AdamW" in text
    assert text.index("<details>") < text.index('name="precision"')


def test_a_cell_is_the_stronger_the_larger_its_share_of_the_row(alice_client: Client) -> None:
    for gpu, largest in (("t4", 20), ("a10", 45), ("l4", 70), ("h100-80gb", 100)):
        estimated(gpu, largest=largest)
    found = re.findall(r'is-estimated heat-(\d)" data-label="([^"]+)"', page(alice_client))
    heats = {name: int(heat) for heat, name in found}
    assert heats == {"T4": 1, "A10": 2, "L4": 3, "H100 SXM5 80 GB": 4}


def test_six_settings_are_open_and_the_others_folded_by_topic(alice_client: Client) -> None:
    form = page(alice_client).split('class="matrix-form', 1)[1].split("</form>", 1)[0]
    opened, *topics = form.split('<details class="topic"')
    assert re.findall(r'name="(\w+)"', opened) == [
        *("batch", "cards", "precision", "optimizer", "gradient_checkpointing", "lora_rank")
    ]
    assert [re.search(r"<summary>(.*?)</summary>", topic)[1] for topic in topics][1:] == [  # type: ignore[index]
        *("LoRA in detail, 8 bits", "Outputs and loss", "The training step")
    ]


def test_a_cpu_has_a_short_name_and_its_limit_once(alice_client: Client) -> None:
    make_measured_run(make_device(name="AMD EPYC 7763 64-Core Processor"))
    head = re.search(r"<thead>.*?</thead>", page(alice_client), re.DOTALL)
    assert head is not None
    assert "AMD EPYC 7763<span>limit 8 GiB</span>" in head[0]


def test_the_large_number_of_a_measured_and_an_estimated_cell_leaves_the_reserve_free(alice_client: Client) -> None:
    run = measured("a10", largest=20)
    MatrixCell.objects.filter(run=run).update(with_reserve_batch_size=18, reserve_fraction=0.05)
    estimated("l4", largest=20)
    text = page(alice_client)
    assert cell(text, "A10").startswith(f"● 18 measured, run {run.pk}")
    assert "up to 20, certified" in cell(text, "A10")
    assert cell(text, "L4").startswith("≈ 18 estimated")
    assert "up to ≈ 20" in cell(text, "L4")


def test_the_lowest_price_that_fits_the_batch_size_of_today_is_marked(alice_client: Client) -> None:
    estimated("t4", largest=12)
    estimated("a10", "l4", "h100-80gb", largest=50)
    marked = [
        name for name in ("T4", "A10", "L4", "H100 SXM5 80 GB") if "lowest price" in cell(page(alice_client), name)
    ]
    assert marked == ["A10"]
    assert "lowest price" in cell(page(alice_client, "?batch=4"), "T4")
    assert "lowest price" not in cell(page(alice_client, "?batch=4000"), "A10")


def test_a_cpu_is_not_counted_as_a_gpu(alice_client: Client) -> None:
    make_measured_run(make_device(name="AMD EPYC 7763 64-Core Processor"))
    assert re.search(r"\b\d+ GPUs and 1 CPU\b", " ".join(re.sub(r"<[^>]+>", "", page(alice_client)).split()))


def test_a_stored_cell_without_its_reserve_is_shown_without_the_size_that_keeps_it(alice_client: Client) -> None:
    measured("a10", largest=20)
    MatrixCell.objects.update(with_reserve_batch_size=19, reserve_fraction=None)
    assert "19" not in cell(page(alice_client), "A10")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?precision=fp7", "<code>precision</code>: must be one of fp32, tf32, bf16, fp16, bf16-pure."),
        ("?precison=fp32", "<code>precison</code>: there is no such parameter here; known parameters: precision, "),
    ],
)
def test_what_the_address_asks_wrongly_is_said(alice_client: Client, query: str, words: str) -> None:
    response = alice_client.get(f"/matrix/{query}")
    assert response.status_code == 400
    assert words in response.content.decode()


def queries(client: Client) -> list[Any]:
    with CaptureQueriesContext(connection) as caught:
        page(client)
    return caught.captured_queries


def test_the_database_is_asked_as_often_for_many_cells_as_for_one_and_loads_no_result(alice_client: Client) -> None:
    measured("a10")
    one = queries(alice_client)
    for gpu in ("h100-80gb", "t4", "l4"):
        for model in ("bert", "gpt2", "bert-tiny"):
            measured(gpu, model=model)
    estimated("a10", "t4", "l4", model="resnet")
    many = queries(alice_client)
    assert len(many) == len(one)
    large = [f'"analysis_run"."{column}"' for column in ("result", "spec", "memory_curve")]
    assert not any(column in query["sql"] for query in many for column in large)


def test_a_disabled_card_is_not_called_the_fleets(alice_client: Client) -> None:
    card("a10")
    Device.objects.update(enabled=False)
    estimated("a10", "l4")
    assert "in this fleet" not in page(alice_client)


def test_a_batch_size_that_no_run_can_have_is_refused_with_its_bounds(alice_client: Client) -> None:
    answer = alice_client.get("/matrix/?batch=1048577")
    assert answer.status_code == 400
    assert "must be a whole number from 1 to 1,048,576" in answer.content.decode()
