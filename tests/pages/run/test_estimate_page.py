"""The pages of an estimate: asked for with a form, labelled wherever it is shown, never called measured."""

import re
import shlex
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.test import Client
from django.utils import timezone

from analysis.models import Device, Run
from analysis.pages.home.first_values import first_values, values_of
from analysis.pages.home.forms import RunForm
from analysis.runs import services
from engine.cli.measure import COMMAND
from engine.cli.options import settings_given, spec_of
from engine.describe.commands import measure_command
from engine.estimate.gpus import gpus
from engine.settings.spec import RunSpec
from tests.factories import (
    make_card,
    make_claimed_estimate,
    make_claimed_run,
    make_device,
    make_estimate,
    make_result,
    make_run,
)
from tests.factories.estimates import make_stored_estimate
from tests.factories.pages import estimate_form

pytestmark = pytest.mark.django_db


def page(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path, headers={"accept": "text/html"})
    assert response.status_code == status
    return re.sub(r"\s+", " ", response.content.decode())


def test_the_form_offers_both_and_every_card_by_its_maker(alice_client):
    make_device()
    text = page(alice_client, "/")
    assert re.search(r'name="kind" value="measurement"[^>]* checked', text)
    assert f"All {len(gpus())} GPUs" in text
    assert '<optgroup label="NVIDIA">' in text
    assert '<optgroup label="AMD">' in text


def test_an_estimate_is_stored_without_any_device(alice_client, alice):
    response = alice_client.post("/runs/new/", estimate_form())
    run = Run.objects.get()
    assert response["Location"] == run.get_absolute_url()
    assert (run.kind, run.gpu, run.model, run.requested_by) == ("estimate", "a10", "bert", alice)


def test_without_a_card_all_of_them_are_meant(alice_client):
    alice_client.post("/runs/new/", estimate_form(gpu=""))
    assert Run.objects.get().gpu == "all"


def test_a_card_that_is_not_offered_stands_beside_its_field(alice_client):
    response = alice_client.post("/runs/new/", estimate_form(gpu="a100-1gb"))
    assert response.status_code == 422
    assert "gpu" in response.context["form"].errors
    assert not Run.objects.exists()


def test_a_measurement_without_a_device_says_what_is_missing(alice_client):
    response = alice_client.post("/runs/new/", estimate_form(kind="measurement"))
    assert response.status_code == 422
    assert "Choose the device to measure on." in response.content.decode()


def test_a_form_from_before_without_a_kind_still_measures(alice_client):
    alice_client.post("/runs/new/", estimate_form(kind="", device=make_device().pk))
    assert Run.objects.get().kind == "measurement"


def test_tf32_can_be_estimated_on_a_host_without_any_gpu(alice_client):
    make_device()
    alice_client.post("/runs/new/", estimate_form(precision="tf32"))
    assert Run.objects.get().precision == "tf32"


def test_one_gpu_leads_with_what_to_use_and_what_todays_size_leaves(alice_client):
    text = page(alice_client, make_stored_estimate().get_absolute_url())
    assert "<h1>Up to 89 fit an A10; batch size 16 leaves 82 % unused.</h1>" in text
    assert "No GPU was used" in text
    assert "BERT base" in text


def test_the_label_is_icon_word_and_colour_and_nothing_is_called_measured(alice_client):
    text = page(alice_client, make_stored_estimate().get_absolute_url())
    assert re.search(r'chip-estimate"><span aria-hidden="true">≈</span> estimate<', text)
    assert text.count("≈ estimated") >= 2
    assert "kind-measured" not in text


def test_one_card_shows_both_bars_the_kinds_and_how_it_was_estimated(alice_client):
    text = page(alice_client, make_stored_estimate().get_absolute_url())
    assert "<b>Today</b><span>batch 16</span>" in text
    assert "<b>With margin</b><span>batch 89</span>" in text
    for words in ("optimizer state", "activations", "typically 1.3 %, at worst 7.9 %", "nominal", "torch", "4.2 s"):
        assert words in text


def test_a_size_that_would_not_fit_is_said_and_not_called_unmeasured(alice_client):
    result = make_stored_estimate()
    estimates = result.result["estimates"]
    Run.objects.filter(pk=result.pk).update(
        spec={**result.spec, "current_batch_size": 100}, result={"estimates": estimates}
    )
    text = page(alice_client, result.get_absolute_url())
    assert "would not fit" in text
    assert "not measured" not in text


def test_all_cards_are_in_one_table_with_price_and_limit(alice_client):
    text = page(alice_client, make_stored_estimate("all").get_absolute_url())
    assert f"All {len(gpus())} GPUs fit batch size 16; lowest known price: " in text
    assert text.count("cheapest that fits") == 1
    assert text.count('<th scope="row">') >= len(gpus())
    assert "$0.60" in text
    assert "A dash means that no price is known" in text


def shown_cards(client: Client, run: Run, query: str = "") -> list[str]:
    text = page(client, run.get_absolute_url() + query)
    table = text.partition('<table class="gpus">')[2].partition("</table>")[0]
    return re.findall(r'<th scope="row">(.*?) <span', table)


def test_the_cards_are_filtered_and_sorted_by_the_address(alice_client):
    run = make_stored_estimate("all")
    everything = shown_cards(alice_client, run)
    assert len(everything) == len(gpus())
    assert shown_cards(alice_client, run, "?card=a100") == [name for name in everything if "A100" in name]
    by_name = shown_cards(alice_client, run, "?sort=name")
    assert (by_name, by_name != everything) == (sorted(everything, key=str.lower), True)
    assert shown_cards(alice_client, run, "?card=a100&sort=name") == [name for name in by_name if "A100" in name]
    of_one_maker = page(alice_client, run.get_absolute_url() + "?card=a100")
    assert f"{len(shown_cards(alice_client, run, '?card=a100'))} of {len(gpus())} GPUs" in of_one_maker


def test_only_the_cards_that_take_the_batch_are_shown_on_request(alice_client):
    run = make_stored_estimate("all")
    run.result["estimates"][0]["safe_batch_size"] = 1
    Run.objects.filter(pk=run.pk).update(result=run.result)
    assert len(shown_cards(alice_client, run, "?fits=1")) == len(gpus()) - 1


def test_the_card_of_the_headline_stands_first(alice_client):
    """The headline names the cheapest that fits: its row, with its price, is the proof."""
    run = make_stored_estimate("all")
    first = shown_cards(alice_client, run)[0]
    assert re.search(rf"lowest known price: an? {re.escape(first)}\b", page(alice_client, run.get_absolute_url()))


def test_cards_without_a_price_come_last_when_they_are_sorted_by_it(alice_client):
    text = page(alice_client, make_stored_estimate("all").get_absolute_url() + "?sort=price")
    prices = re.findall(r"\$[\d.,]+|dash\">–<", text.partition('<table class="gpus">')[2])
    amounts = [float(price.strip("$").replace(",", "")) for price in prices if price.startswith("$")]
    assert amounts == sorted(amounts)
    assert prices == sorted(prices, key=lambda price: price.startswith("dash"))


def test_a_wrong_order_is_said_and_all_cards_are_shown(alice_client):
    run = make_stored_estimate("all")
    text = page(alice_client, run.get_absolute_url() + "?sort=colour")
    assert "<code>sort</code>: must be one of fit, largest, safe" in text
    assert len(shown_cards(alice_client, run, "?sort=colour")) == len(gpus())


@pytest.mark.parametrize("address", ["/", "/runs/", "/estimates/"])
def test_a_row_says_on_how_many_cards_an_estimate_fits(alice_client, address):
    make_stored_estimate("all")
    text = re.sub(r"<[^>]+>", " ", page(alice_client, address))
    assert f"{len(gpus())} of {len(gpus())} GPUs" in text


def test_the_cards_are_counted_while_the_estimate_runs(alice_client):
    run = make_claimed_estimate("all", model="bert")
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="predicting")
    progress = {"phases": {"tracing": 0.0, "predicting": 3.0}, "cards": 34, "cards_done": 12}
    progress["ends_at"] = (timezone.now() + timedelta(seconds=127)).timestamp()
    services.attempt_set(run_id=run.pk, token=run.token, progress=progress)
    text = page(alice_client, run.get_absolute_url())
    assert "12 of 34 GPUs" in text
    assert "<title>2 of 2 · 2 min left · BERT base · MemoryMark</title>" in text


def test_an_untouched_form_on_a_cpu_estimates_without_a_limit(alice_client):
    make_device()
    assert re.search(r'<input type="hidden" name="suggested_limit" value="512MiB"', page(alice_client, "/"))
    untouched = first_values(Device.objects.all())
    response = alice_client.post("/runs/new/", estimate_form(**untouched, gpu="all") | {"model": "bert"})
    assert response.status_code == 302
    assert Run.objects.get().spec["memory_limit_bytes"] is None


def test_an_approximate_trace_is_said_with_icon_and_word(alice_client):
    text = page(alice_client, make_stored_estimate(changes={"method": "approximate_fake_cpu"}).get_absolute_url())
    assert '<span aria-hidden="true">▲</span> approximate' in text
    assert "a GPU's own may take several percent" in text.replace("&#x27;", "'")


def test_measure_this_is_offered_where_there_is_a_device(alice_client):
    run = make_stored_estimate()
    assert "Measure this" not in page(alice_client, run.get_absolute_url())
    make_card(name="NVIDIA A10", capacity_bytes=gpus()["a10"].total_bytes)
    assert f"?from={run.pk}&amp;kind=measurement" in page(alice_client, run.get_absolute_url())


def test_measuring_it_starts_from_its_settings_on_a_card_of_that_class(alice_client):
    make_card(0, name="Tesla V100", capacity_bytes=2**34)
    same = make_card(1, name="NVIDIA A10", capacity_bytes=gpus()["a10"].total_bytes)
    run = make_estimate("a10", model="gpt2", precision="bf16")
    values = values_of(run, "measurement", Device.objects.all())
    assert (values["kind"], values["model"], values["precision"]) == ("measurement", "gpt2", "bf16")
    assert values["device"] == str(same.pk)
    assert "time_budget_seconds" not in values
    assert re.search(r'value="measurement"[^>]* checked', page(alice_client, f"/?from={run.pk}&kind=measurement"))


def test_a_measured_run_can_be_turned_into_an_estimate():
    values = values_of(make_run(), "estimate")
    assert (values["kind"], values["gpu"]) == ("estimate", "all")


def test_without_a_device_the_form_begins_with_the_estimate():
    assert first_values([])["kind"] == "estimate"
    assert RunForm(devices=[]).fields["gpu"].choices[0][0] == "all"


def test_a_waiting_one_says_that_it_needs_no_device(alice_client):
    text = page(alice_client, make_estimate().get_absolute_url())
    assert "Waiting for a free worker; an estimate needs no device." in text
    assert "Probes" not in text


def test_its_poll_brings_no_table_of_probes(alice_client):
    run = make_claimed_estimate()
    services.run_heartbeat(run_id=run.pk, token=run.token, phase="tracing")
    text = page(alice_client, f"/runs/{run.pk}/live/")
    assert "no device is used" in text
    assert "live-probes" not in text


def test_one_that_failed_says_why_and_is_still_labelled(alice_client):
    run = make_claimed_estimate("a10", model="bert")
    services.run_fail(run_id=run.pk, token=run.token, code="bad_spec", message="measure it instead", exit_status=2)
    text = page(alice_client, run.get_absolute_url())
    assert "BERT base on A10: no estimate could be made: a setting was refused." in text
    assert "chip-estimate" in text
    assert "measure it instead" in text


def test_the_list_on_the_home_page_labels_it(alice_client):
    make_stored_estimate()
    line = page(alice_client, "/").partition("Estimates:")[2]
    assert re.search(r"≈ 89 on\s+A10", line)


def test_an_attempt_without_a_device_is_shown(alice_client):
    run = make_claimed_estimate()
    services.run_fail(run_id=run.pk, token=run.token, code="internal", message="gone")
    assert '<td data-label="Device">–</td>' in page(alice_client, run.get_absolute_url())


def test_a_measured_run_without_an_estimate_says_nothing_of_one(alice_client):
    run = make_claimed_run()
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())
    assert "Estimated before" not in page(alice_client, run.get_absolute_url())


def test_an_estimate_for_a_gpu_that_is_not_here_offers_the_command_not_the_cpu(alice_client: Client) -> None:
    make_device()
    html = page(alice_client, make_stored_estimate("rtx-4090").get_absolute_url())
    assert "Measure this" not in html
    assert (
        '<a class="button button-go" href="#measure-command" data-copies="measure-command">Copy the command</a>' in html
    )
    assert "No NVIDIA GeForce RTX 4090 is among the devices of this portal." in html
    assert re.search(r'<pre id="measure-command" tabindex="0">memorymark measure bert\b', html)


def test_the_command_to_measure_elsewhere_is_understood_and_makes_the_same_spec() -> None:
    wanted = RunSpec(
        model="bert",
        precision="bf16",
        gradient_checkpointing=True,
        lora_rank=8,
        memory_limit_bytes=8 * 2**30,
        current_batch_size=32,
        reserve_bytes=2 * 2**30,
    )
    verb, *arguments = shlex.split(measure_command(wanted.to_dict()))[1:]
    with COMMAND.make_context(verb, arguments) as context:
        assert spec_of(settings_given(SimpleNamespace(**context.params)), None) == wanted
