"""The start page beside its form: totals that count nothing twice, the queue, and few questions to the database."""

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.lists.totals import lab_totals, lab_totals_read
from analysis.models import Device, Run
from analysis.pages.home.first_values import REHEARSAL_LIMIT
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.text.units import GIB, MIB
from engine.trainings.script.spec import TuneSpec
from tests.factories import make_card, make_claimed_run, make_device, make_estimate, make_measured_run, make_run
from tests.factories.pages import form_data

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_totals_of_another_test() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def text_of(client: Client, address: str = "/") -> str:
    response = client.get(address, headers={"accept": "text/html"})
    assert response.status_code == 200
    return response.content.decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_a_setup_that_was_measured_twice_counts_once() -> None:
    card = make_card()
    make_measured_run(card), make_measured_run(card)
    totals = lab_totals_read()
    assert (totals.run_count, totals.setup_count, totals.sums.saving_usd) == (2, 1, 60.0)
    assert (totals.sums.advised_bytes, totals.sums.advised_count) == (400 * MIB, 1)


def test_two_setups_add_up() -> None:
    card = make_card()
    make_measured_run(card), make_measured_run(card, optimizer="sgd")
    totals = lab_totals_read()
    assert (totals.setup_count, totals.sums.saving_usd, totals.sums.saving_count) == (2, 120.0, 2)


def test_what_was_never_measured_is_not_zero(alice_client: Client) -> None:
    totals = lab_totals_read()
    assert (totals.sums.unused_bytes, totals.largest_saving, totals.sums.saving_usd) == (None, None, None)
    assert "Totals of this lab" not in text_of(alice_client)
    make_estimate()
    assert words(text_of(alice_client)).count("not measured") >= 2


def test_a_deleted_run_leaves_the_totals(alice: Any) -> None:
    run = make_measured_run(make_card(), requested_by=alice)
    services.runs_delete(run_ids=[run.pk], by=alice)
    totals = lab_totals_read()
    assert (totals.run_count, totals.setup_count, totals.sums.unused_bytes) == (0, 0, None)


def test_an_estimate_counts_as_a_run_and_as_nothing_measured() -> None:
    make_estimate()
    totals = lab_totals_read()
    assert (totals.run_count, totals.setup_count) == (1, 0)


def test_a_larger_batch_that_saves_nothing_takes_nothing_away() -> None:
    card = make_card()
    make_measured_run(card)
    slower = make_measured_run(card, optimizer="sgd")
    Run.objects.filter(pk=slower.pk).update(claimed_saving_per_year_usd=-5.0)
    assert lab_totals_read().sums.saving_usd == 60.0
    Run.objects.filter(pk=slower.pk).update(claimed_saving_per_year_usd=5.0, saving_per_year_usd_low=-1.0)
    assert lab_totals_read().sums.saving_usd == 60.0


def test_the_totals_are_kept_for_a_while(django_assert_num_queries: Any) -> None:
    first = lab_totals()
    make_run()
    with django_assert_num_queries(0):
        assert lab_totals() == first


def test_the_totals_never_count_fewer_runs_than_the_table_beside_them_shows(alice_client: Client) -> None:
    for count in (1, 2):
        make_estimate()
        text = words(text_of(alice_client))
        assert f"Runs {count} stored, including estimates and validations" in text


def test_estimates_take_one_line_and_do_not_push_out_what_was_measured(alice_client: Client) -> None:
    run = make_measured_run(make_card())
    for _ in range(6):
        make_estimate()
    html = text_of(alice_client)
    table, _, line = html.partition("Recent runs</caption>")[2].partition("</table>")
    assert table.count("<tr>") == 2
    assert f'href="/runs/{run.pk}/"' in table
    assert line.partition("</p>")[0].count('href="/runs/') == 3


def test_a_column_that_no_recent_run_fills_is_left_out(alice_client: Client) -> None:
    run = make_measured_run(make_card())
    Run.objects.filter(pk=run.pk).update(claimed_saving_per_year_usd=None)
    table = text_of(alice_client).partition("Recent runs</caption>")[2].partition("</table>")[0]
    assert "Saved a year" not in table
    assert "Speed-up" in table


def test_a_measured_saving_of_nothing_is_zero_and_not_unknown(alice_client: Client) -> None:
    run = make_measured_run(make_card())
    Run.objects.filter(pk=run.pk).update(saving_per_year_usd=0.0, claimed_saving_per_year_usd=0.0)
    totals = lab_totals_read()
    assert (totals.sums.saving_usd, totals.sums.saving_count) == (0.0, 0)
    assert "Saving per year $0.00 no measured setup would be faster" in words(text_of(alice_client))


def test_memory_that_is_left_unused_on_advice_is_no_waste(alice_client: Client) -> None:
    card = make_card()
    kept = make_measured_run(card)
    Run.objects.filter(pk=kept.pk).update(recommended_batch_size=kept.current_batch_size)
    totals = lab_totals_read()
    assert (totals.sums.advised_bytes, totals.sums.advised_count) == (0, 0)
    assert "624.0 MiB 60.9 % of 1.0 GiB in 1 setup; no other size is recommended" in words(text_of(alice_client))
    make_measured_run(card, optimizer="sgd")
    totals = lab_totals_read()
    assert (totals.sums.advised_bytes, totals.sums.advised_count) == (400 * MIB, 1)
    assert (totals.sums.unused_bytes, totals.sums.of_bytes, totals.sums.setting_count) == (2 * 624 * MIB, 2 * GIB, 2)


def test_where_no_size_is_recommended_no_memory_is_called_waste() -> None:
    unclear = make_measured_run(make_card())
    Run.objects.filter(pk=unclear.pk).update(recommended_batch_size=None, recommended_memory_bytes=None)
    totals = lab_totals_read()
    assert (totals.sums.advised_bytes, totals.sums.advised_count) == (0, 0)


def test_lower_bounds_add_up_to_a_lower_bound(alice_client: Client) -> None:
    card = make_card()
    make_measured_run(card)
    bound = make_measured_run(card, optimizer="sgd")
    least = {"saving_per_year_usd": None, "saving_per_year_usd_low": 61.239, "claimed_saving_per_year_usd": 61.239}
    Run.objects.filter(pk=bound.pk).update(**least)
    totals = lab_totals_read()
    assert (totals.sums.saving_count, totals.sums.is_least, totals.sums.saving_text) == (2, True, "at least $121.23")
    assert "Saving per year at least $121.23" in words(text_of(alice_client))


def test_the_largest_saving_names_its_setup_and_the_size_to_use(alice_client: Client) -> None:
    card = make_card()
    make_measured_run(card)
    script = make_script_run(card, claimed_saving_per_year_usd=90.0, model="tagger")
    largest = lab_totals_read().largest_saving
    assert largest == {"run_id": script.pk, "name": "tagger", "batch_size": 56}
    text = words(text_of(alice_client))
    saves = "Other sizes save $150.00 a year , most by tagger: use batch size 56 ."
    assert f"is unused at today’s batch sizes. {saves}" in text


def make_script_run(device: Device, **columns: Any) -> Run:
    run = services.run_create(spec=TuneSpec(("python", "train.py", "{batch_size}")), place=Placement(device))
    measured = {"state": "finished", "certified": True, "is_shared": False, "device_name": device.name}
    figures = {"current_batch_size": 16, "limit_bytes": GIB, "current_waste_bytes": MIB}
    figures |= {"recommended_batch_size": 56, "recommended_memory_bytes": GIB}
    saved = {"claimed_saving_per_year_usd": 10.0, "saving_per_year_usd": 10.0}
    Run.objects.filter(pk=run.pk).update(**measured | figures | saved | columns)
    return run


def test_own_scripts_count_once_for_each_device_and_limit_by_their_newest_run() -> None:
    card = make_card()
    make_measured_run(card)
    make_script_run(card, current_waste_bytes=9 * MIB)
    make_script_run(card)
    totals = lab_totals_read()
    assert (totals.setup_count, totals.sums.advised_count, totals.sums.saving_usd) == (2, 2, 70.0)
    assert (totals.sums.advised_bytes, totals.sums.advised_count) == (401 * MIB, 2)
    make_script_run(card, limit_bytes=2 * GIB)
    assert lab_totals_read().setup_count == 3


@pytest.mark.parametrize(
    "columns",
    [{"certified": False}, {"is_shared": True}, {"is_trusted": False, "reported_from": "node-7"}, {"state": "failed"}],
)
def test_a_script_run_that_proves_nothing_is_not_in_the_totals(columns: Any) -> None:
    make_script_run(make_card(), **columns)
    totals = lab_totals_read()
    assert (totals.setup_count, totals.sums.unused_bytes, totals.sums.saving_usd) == (0, None, None)


def test_the_totals_open_no_result() -> None:
    card = make_card()
    make_measured_run(card), make_script_run(card)
    with CaptureQueriesContext(connection) as asked_of_database:
        lab_totals_read()
    assert len(asked_of_database) == 5
    assert all('"result"' not in query["sql"] for query in asked_of_database)


def test_one_limit_keeps_a_first_run_short(alice_client: Client) -> None:
    make_device()
    html = text_of(alice_client)
    assert f"--memory-limit {REHEARSAL_LIMIT}</code>" in html
    assert f'value="{REHEARSAL_LIMIT}"' in html


def test_nobody_waits(alice_client: Client) -> None:
    make_device()
    assert "The queue is empty." in text_of(alice_client)


def test_my_place_in_the_queue_is_said(alice: Any, root: Any, alice_client: Client) -> None:
    card = make_card()
    make_claimed_run(card)
    make_run(card, requested_by=root)
    mine = make_run(card, requested_by=alice)
    said = words(text_of(alice_client, "/devices/"))
    assert "2 runs wait for a device." in said
    assert f"Your run {mine.pk}" in said
    assert "number 2" in said or "next" in said


def test_the_home_page_takes_the_same_queries_however_many_devices_and_runs(alice_client: Client) -> None:
    counts = []
    for number in range(2):
        for each in range(1 + 2 * number):
            make_measured_run(make_card(10 * number + each))
        cache.clear()
        text_of(alice_client)
        with CaptureQueriesContext(connection) as queries:
            text_of(alice_client)
        counts.append(len(queries))
        assert all('"analysis_run"."result"' not in query["sql"] for query in queries)
    assert counts[0] == counts[1]


def test_a_large_fleet_is_cut_and_leads_to_the_fleet_page(alice_client: Client) -> None:
    for number in range(15):
        make_card(number)
    text = " ".join(text_of(alice_client, "/devices/").split())
    assert text.count('class="device-name"') == 4
    assert "All 15 devices" in text
    Device.objects.filter(device__in=[f"cuda:{number}" for number in range(9)]).update(last_seen_at=None)
    assert "9 without a sign of life" in " ".join(text_of(alice_client, "/devices/").split())


def test_what_the_form_and_what_the_queue_object_to_is_said_at_once(alice_client: Client) -> None:
    wrong = {"sequence_length": "9999", "time_budget_seconds": "600000", "priority": "1", "memory_limit_bytes": "9TiB"}
    response = alice_client.post("/runs/new/", form_data(make_device(), **wrong))
    assert set(response.context["form"].errors) == set(wrong)
    assert not Run.objects.exists()


def test_an_address_fills_the_form_and_replaces_what_a_cloned_run_had(alice_client: Client) -> None:
    run = make_run(model="gpt2", current_batch_size=7)
    text = text_of(alice_client, f"/?clone={run.pk}&optimizer=sgd")
    assert '<option value="gpt2" selected>' in text
    assert '<option value="sgd" selected>' in text
    assert 'name="current_batch_size" value="7"' in text
    assert f'with the settings of <a href="{run.get_absolute_url()}">run {run.pk}</a>' in text


def test_a_device_whose_worker_is_silent_is_not_offered_and_the_form_says_so(alice_client: Client) -> None:
    living, silent = (
        make_card(0, "host-a"),
        make_card(0, "host-b", last_seen_at=timezone.now() - dt.timedelta(minutes=2)),
    )
    page = text_of(alice_client)
    assert f'<option value="{living.pk}">' in page
    assert f'<option value="{silent.pk}">' not in page
    assert "Not offered, because their workers give no sign of life: host-b cuda:0." in page
    assert "Any GPU" not in page
    assert "⊘ no sign of life" in words(page)  # on the device's own card
    response = alice_client.post("/runs/new/", form_data(silent))
    assert (response.status_code, Run.objects.count()) == (422, 0)


def test_where_no_worker_lives_all_devices_are_offered_and_what_is_asked_waits(alice_client: Client) -> None:
    silent = make_card(last_seen_at=timezone.now() - dt.timedelta(minutes=2))
    assert f'<option value="{silent.pk}">' in text_of(alice_client)
    assert alice_client.post("/runs/new/", form_data(silent)).status_code == 302
