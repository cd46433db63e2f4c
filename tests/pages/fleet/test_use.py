"""The fleet page: hours of use by day, who leaves memory unused, and which devices a run of several holds."""

import html
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.formatting import hours_text, share_text
from analysis.lists.use import load
from analysis.lists.use.load import held_since
from analysis.models import Attempt, Device, DeviceDay, Run
from analysis.runs import services
from engine.text.units import GIB, MIB
from tests.factories import make_card, make_claimed_run, make_measured_run, make_run_of_several, make_user
from tests.factories.history import store
from tests.pages.fleet.test_fleet_page import page, words

pytestmark = pytest.mark.django_db


def ran(hours: float, *, days_ago: float = 0.0, **columns: object) -> Run:
    """A run that held a card for some hours, and ended some days ago."""
    run = make_measured_run(**columns)
    ends = timezone.now() - timedelta(days=days_ago)
    Attempt.objects.filter(run=run).update(started_at=ends - timedelta(hours=hours), ended_at=ends)
    Run.objects.filter(pk=run.pk).update(finished_at=ends)
    return run


def table(text: str, caption: str) -> str:
    found = re.search(rf"<h3>{caption}</h3>.*?</table>", text, re.DOTALL)
    assert found is not None
    return words(found[0])


def hours_by_day(text: str) -> float:
    """Add up the days of a table: midnight divides a run, and less than an hour is written in minutes."""
    found = re.findall(r"\d{4}-\d\d-\d\d (?:(\d+\.\d) h|(\d+) min)", text)
    return sum(float(hours or 0.0) + float(minutes or 0.0) / 60 for hours, minutes in found)


def test_a_devices_days_are_a_picture_with_its_table(alice_client: Client) -> None:
    card = make_card()
    ran(2.0, days_ago=2, device=card)
    ran(1.0, days_ago=40, device=card)
    text = page(alice_client)
    assert "2.0 h in 1 run," in words(text)
    assert len(re.findall(r'aria-label="Use of [^"]* by day', text)) == 2  # in the device's line, and large
    rows = re.search(r"Days with runs or readings.*?</table>", text, re.DOTALL)
    assert rows is not None
    assert hours_by_day(words(rows[0])) == pytest.approx(2.0, abs=0.1)


def test_what_all_programs_held_and_computed_is_a_picture_by_day(alice_client: Client) -> None:
    card, today = make_card(), timezone.now().date()
    assert "Memory in use, by all programs" not in words(page(alice_client))
    for days_ago, readings in ((1, (2, 6)), (0, (10,))):
        DeviceDay.objects.create(
            device=card,
            day=today - timedelta(days=days_ago),
            reading_count=len(readings),
            used_sum_bytes=sum(readings) * GIB,
            most_used_bytes=max(readings) * GIB,
            busy_reading_count=2 * (1 - days_ago),
            busy_sum_percent=50,
        )
    text = page(alice_client)
    assert "Memory in use, by all programs: 6.0 GiB on average, 10.0 GiB at most" in words(text)
    assert "Busy, for any program: 25.0 % of the time that was read" in words(text)
    assert f"{today - timedelta(days=1)} 0 min 0.0 % – 4.0 GiB 6.0 GiB" in words(text)
    assert f"{today} 0 min 0.0 % 25.0 % 10.0 GiB 10.0 GiB" in words(text)


def test_a_persons_days_are_a_picture_with_what_was_left_unused_on_them(alice: User, alice_client: Client) -> None:
    ran(2.0, days_ago=2, device=make_card(), requested_by=alice)
    ran(1.0, days_ago=2, device=make_card(1), requested_by=alice)
    text = page(alice_client)
    people = re.search(r'id="person-days-title".*?</section>', text, re.DOTALL)
    assert people is not None
    said = words(people[0])
    assert "alice 3.0 h in 2 runs" in said
    assert hours_by_day(said) == pytest.approx(3.0, abs=0.1)
    assert "624.0 MiB, 60.9 %" in said


def test_the_range_is_chosen_and_marked(alice_client: Client) -> None:
    card = make_card()
    ran(1.0, days_ago=40, device=card)
    assert "0 min in 0 runs" in words(page(alice_client))
    text = page(alice_client, "/fleet/?days=90")
    assert "1.0 h in 1 run," in words(text)
    assert re.search(r'aria-current="true">90 days<', text)


def test_another_range_is_refused_by_its_name_and_the_usual_one_is_shown(alice_client: Client) -> None:
    make_card()
    response = alice_client.get("/fleet/?days=8")
    assert response.status_code == 400
    assert "days : must be one of 7, 30, 90." in words(response.content.decode())
    assert "The last 30 days" in words(response.content.decode())


def test_memory_left_unused_is_shown_by_person_and_by_model(alice: User, alice_client: Client) -> None:
    card = make_card()
    for _ in range(2):
        make_measured_run(card, requested_by=alice)
    text = page(alice_client)
    lost = "$60.00 a year 624.0 MiB, 60.9 % of 1.0 GiB"
    assert 'title="In 1 setup; recommended sizes would use 400.0 MiB of it"' in text
    assert re.search(rf"alice {re.escape(lost)} [^–]+ min 2$", table(text, "By person"))
    assert f"BERT tiny {lost} – 2" in table(text, "By model or script")
    assert f"{card} {lost}" in table(text, "By device")
    assert 'href="/runs/?user=alice"' in text
    assert "Hours count MemoryMark’s own runs only" in words(text)


def test_who_would_save_most_comes_first(alice: User, alice_client: Client) -> None:
    make_measured_run(make_card(), requested_by=alice)
    dear = make_measured_run(make_card(1, uuid="GPU-1"), requested_by=make_user("bob"))
    Run.objects.filter(pk=dear.pk).update(claimed_saving_per_year_usd=900.0, current_waste_bytes=MIB)
    people = table(page(alice_client), "By person")
    assert people.index("bob $900.00") < people.index("alice $60.00")


def test_a_run_without_a_figure_is_counted_and_not_measured(alice_client: Client) -> None:
    run = make_measured_run(make_card(), requested_by=make_user("bob"))
    Run.objects.filter(pk=run.pk).update(current_waste_bytes=None, claimed_saving_per_year_usd=None)
    assert "bob not measured not measured" in table(page(alice_client), "By person")


def test_an_own_script_is_named_and_marked(alice_client: Client) -> None:
    run = make_measured_run(make_card())
    Run.objects.filter(pk=run.pk).update(kind=Run.Kind.COMMAND, model="tagger")
    assert "tagger script $60.00 a year" in table(page(alice_client), "By model or script")


def test_deleted_and_untrusted_runs_are_in_no_sum(alice_client: Client) -> None:
    run = make_measured_run(make_card())
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now())
    other = make_measured_run(make_card(1), optimizer="sgd")
    Run.objects.filter(pk=other.pk).update(reported_from="node7", is_trusted=False)
    assert "No search for a batch size, and no watch on a GPU, has ended in these days." in words(page(alice_client))


def test_a_host_shown_alone_has_its_own_sums(alice_client: Client) -> None:
    make_measured_run(make_card(0, "lab-1"), requested_by=make_user("bob"))
    make_measured_run(make_card(0, "lab-2", uuid="GPU-2"), requested_by=make_user("eve"))
    people = table(page(alice_client, "/fleet/?host=lab-1"), "By person")
    assert ("bob" in people, "eve" in people) == (True, False)


def test_runs_that_were_not_read_are_owned_up_to(alice_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    card = make_card()
    ran(1.0, days_ago=2, device=card), ran(1.0, days_ago=1, device=card)
    for module in ("analysis.lists.use.load", "analysis.pages.fleet.use"):
        monkeypatch.setattr(f"{module}.HELD_MAX", 1)
        monkeypatch.setattr(f"{module}.RUNS_MAX", 1)
    text = words(page(alice_client))
    assert "Only the newest 1 finished runs are counted." in text
    assert "are not counted: there are too many." in text
    assert "1.0 h in 1 run," in text


def test_a_run_without_an_end_counts_until_its_last_sign_of_life(alice_client: Client) -> None:
    run, now = make_claimed_run(make_card()), timezone.now()
    Attempt.objects.filter(run=run).update(started_at=now - timedelta(days=3))
    Run.objects.filter(pk=run.pk).update(heartbeat_at=now - timedelta(days=3) + timedelta(hours=2))
    assert "2.0 h in 1 run," in words(page(alice_client))


def test_the_polled_part_reads_none_of_it(alice_client: Client) -> None:
    make_card()
    with CaptureQueriesContext(connection) as queries:
        part = alice_client.get("/fleet/now/?host=lab&days=7", headers={"HX-Request": "true"})
    assert b"Who loses most" not in part.content
    assert not [each for each in queries if 'FROM "analysis_attempt"' in each["sql"]]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's plan")
def test_only_the_newest_rows_are_read_in_an_indexes_order() -> None:
    store(20, finished_at=timezone.now(), device_name="A100", spec={"model": "bert-tiny"})
    since = timezone.now() - timedelta(days=7)
    with CaptureQueriesContext(connection) as queries:
        load.held_since(since)
        load.settings_measured_since(since)
    for query in queries.captured_queries:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
            plan = " ".join(row[3] for row in cursor.fetchall())
        assert ("attempt_latest_started" in plan or "run_latest_ended" in plan, "TEMP B-TREE" in plan) == (
            True,
            False,
        ), plan


def test_the_start_page_and_the_fleet_page_say_the_same_of_unused_memory(alice_client: Client) -> None:
    cache.clear()
    card = make_card()
    kept = make_measured_run(card)
    Run.objects.filter(pk=kept.pk).update(
        recommended_batch_size=kept.current_batch_size, recommended_memory_bytes=400 * MIB
    )
    make_measured_run(card, optimizer="sgd")
    both = "60.9 % of 2.0 GiB", "recommended sizes would use 400.0 MiB of it"
    start = words(alice_client.get("/", headers={"accept": "text/html"}).content.decode())
    fleet = page(alice_client)
    assert [text in start and text in fleet for text in both] == [True] * 2
    cache.clear()


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (0.0, "0 min"),
        (0.004, "less than 1 min"),
        (0.1, "6 min"),
        (1 - 1e-9, "1.0 h"),
        (1.0, "1.0 h"),
        (1234.5, "1,234.5 h"),
    ],
)
def test_a_span_reads_neither_as_nothing_nor_as_sixty_minutes(hours: float, said: str) -> None:
    assert hours_text(hours) == said


def test_a_share_that_is_above_nothing_never_reads_as_nothing() -> None:
    assert [share_text(share) for share in (0.0, 0.0001, 0.012)] == ["0.0 %", "less than 0.1 %", "1.2 %"]


@pytest.fixture
def cards() -> list[Device]:
    return [make_card(number, uuid=f"GPU-{number}") for number in range(3)]


@pytest.fixture
def run(cards: list[Device]) -> Run:
    make_run_of_several(2)
    wanted = services.claim_next(device=cards[0], owner="worker")
    run = services.set_claim(wanted=wanted, owner="worker")
    assert run is not None
    return run


def words_of(client: Client, address: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", client.get(address).content.decode())).split())


def test_each_device_names_the_run_and_the_devices_that_it_holds_too(run: Run, alice_client: Client) -> None:
    shown = words_of(alice_client, "/fleet/")
    assert shown.count(f"run {run.pk} BERT tiny with cuda:") == 2
    assert "BERT tiny with cuda:1" in shown
    assert shown.count("no run") == 1


def test_a_waiting_run_says_how_many_it_needs(run: Run, alice_client: Client) -> None:
    waiting = make_run_of_several(3)
    assert f"run {waiting.pk} BERT tiny on 3 × GPU of one host: next, after run {run.pk}" in words_of(
        alice_client, "/fleet/"
    )
    assert f"next, after run {run.pk}" in words_of(alice_client, waiting.get_absolute_url())


def test_the_api_names_the_run_of_each_device_and_the_devices_of_each_attempt(run: Run, alice_client: Client) -> None:
    devices = alice_client.get("/api/v1/devices/").json()["results"]
    assert {device["device"]: device["running_run"] for device in devices} == {
        "cuda:0": run.pk,
        "cuda:1": run.pk,
        "cuda:2": None,
    }
    answer = alice_client.get(f"/api/v1/runs/{run.pk}/").json()
    assert (answer["device_count"], answer["attempts"][0]["devices"]) == (2, ["cuda:0", "cuda:1"])


def test_the_page_of_an_ended_run_lists_the_devices_of_its_attempt(run: Run, alice_client: Client) -> None:
    services.run_fail(run_id=run.pk, token=run.token, code="engine_died", message="It died.")
    shown = words_of(alice_client, run.get_absolute_url())
    assert "lab cuda:0, cuda:1" in shown
    assert "2 × A100" in shown


def test_each_of_its_devices_was_in_use(run: Run, cards: list[Device]) -> None:
    held = held_since(timezone.now() - timedelta(days=1))
    assert sorted((each.device_id, each.is_further) for each in held) == [(cards[0].pk, False), (cards[1].pk, True)]
