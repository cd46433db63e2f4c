"""Races beside each other: a row for each change, what is recommended where, and runs that cannot stand beside them."""

import re
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analysis.lists.comparison.races import LARGER_BATCH, change_rows, compared_races, races_headline
from analysis.models import Run, State
from analysis.presentation.kinds import presentation_of
from engine.questions.faster.spec import FasterSpec
from engine.questions.kinds import RunKind
from engine.race.text import describe_speed
from tests.engine.fake_racer import FAST, raced
from tests.engine.trainings.script.made_up_script import raced as raced_script
from tests.factories import make_device, make_measured_run, make_user
from tests.pages.compare.test_compare_page import page, words
from tests.pages.run.test_race import ended

pytestmark = pytest.mark.django_db
GAINS = {"factors": FAST, "step_seconds": lambda size: 0.025 * size}
SLOWER = {"step_seconds": lambda size: 0.025 * size, "factors": {"fused": 0.9, "bf16": 0.8, "checkpointing": 0.8}}


def race(**changed: Any) -> Run:
    found, _ = raced(**changed)
    run = make_measured_run(make_device(f"lab-{Run.objects.count()}"))
    kept = {"kind": RunKind.RACE, "state": State.FINISHED, "spec": found.spec.to_dict(), "result": found.to_dict()}
    Run.objects.filter(pk=run.pk).update(**kept)
    return Run.objects.get(pk=run.pk)


def own_race(*tried: str, **changed: Any) -> Run:
    found, _ = raced_script(*tried, **changed)
    run = make_measured_run(make_device(f"lab-{Run.objects.count()}"))
    kept = {"kind": RunKind.OWN_RACE, "spec": found.spec.to_dict(), "result": found.to_dict()}
    Run.objects.filter(pk=run.pk).update(**kept)
    return Run.objects.get(pk=run.pk)


def test_each_change_has_a_row_and_each_race_its_answer(alice_client: Client) -> None:
    gains, loses = race(**GAINS), race(**SLOWER)
    text = words(page(alice_client, gains, loses))
    assert text.index("recommended in 1 of 2 races") < text.index("Recommended")
    assert "nothing found" in text
    rows = {row.label: row.cells for row in change_rows(compared_races([gains, loses]))}
    assert "1.3" in rows["AdamW, fused"][0].speed
    assert "0.9" in rows["AdamW, fused"][1].speed
    assert rows["gradient checkpointing"][1].note or rows["gradient checkpointing"][1].speed


def test_a_change_that_one_race_does_not_have_is_an_empty_cell(alice_client: Client) -> None:
    both, failed = race(**GAINS), race(factors=FAST, fails=frozenset({"compile"}))
    rows = {row.label: row.cells for row in change_rows(compared_races([both, failed]))}
    assert "ended with status -11" in rows["torch.compile"][1].note
    assert not rows["torch.compile"][1].speed


def test_what_no_race_tried_is_folded_and_no_race_is_a_baseline(alice_client: Client) -> None:
    html = page(alice_client, race(**GAINS), race(**GAINS))
    assert "Use as baseline" not in html
    assert "changes that no race tried" not in html
    spec = FasterSpec(model="bert-tiny", device="cpu", tried="fused,channels-last", current_batch_size=4)
    failed = words(page(alice_client, *(race(fails=frozenset({"compile"}), **GAINS) for _ in range(2))))
    assert "that no race tried" not in failed
    other = words(page(alice_client, race(spec=spec, **GAINS), race(spec=spec, **GAINS)))
    assert "1 change that no race tried" in other


def test_the_headline_counts_what_is_recommended() -> None:
    races = compared_races([race(**GAINS), race(**GAINS), race(**SLOWER)])
    assert races_headline(races) == "AdamW, fused: recommended in 2 of 3 races; bf16 autocast: in 2."
    assert races_headline(races[2:]) == "No change is recommended in this race."


def test_what_is_recommended_has_the_interval_that_decided_and_its_batch_size_counts_as_a_part_of_it(
    alice_client: Client,
) -> None:
    larger, today = race(factors=FAST, step_seconds=lambda size: 0.1 + 0.001 * size), race(**GAINS)
    races = compared_races([larger, today])
    for each in races:
        assert each.race is not None
        assert each.race.gain is not None
        assert describe_speed(each.race.gain) in each.answer
    assert "+ batch 1" in races[0].answer
    assert f"{LARGER_BATCH}: in 1" in races_headline(races)
    bold = [[row.label for row in change_rows([each]) if row.cells[0].is_recommended] for each in races]
    assert [len(labels) for labels in bold] == [0, 1], "at today's batch size the changes alone were not shown"
    assert races[0].answer in page(alice_client, larger, today)


def test_a_change_that_only_saves_memory_is_what_a_race_found() -> None:
    run = own_race("release-outputs", noted={"kept_bytes": 400})
    [one] = compared_races([run])
    assert presentation_of(run).found(run) == "✓ 44.4 % less memory"
    assert one.answer == "44.4 % less memory: Outputs released after each step"
    said = "No change is recommended for speed; Outputs released after each step: less memory in 1 of 1 race."
    assert races_headline([one]) == said


def test_a_race_and_a_measurement_are_not_compared(alice_client: Client) -> None:
    measured, raced_run = make_measured_run(make_device()), race(**GAINS)
    answer = alice_client.get("/compare/", {"ids": f"{measured.pk},{raced_run.pk}"})
    assert answer.status_code == 400
    assert (
        f"run {measured.pk} has batch sizes, run {raced_run.pk} has changes of the training" in answer.content.decode()
    )


def test_the_list_offers_to_compare_its_measurements_without_its_races(alice_client: Client) -> None:
    device = make_device()
    measured = [make_measured_run(device) for _ in range(3)]
    race(**GAINS)
    listed = alice_client.get("/runs/", headers={"accept": "text/html"}).content.decode()
    [address] = re.findall(r'class="chart-link" href="([^"#]+)', listed)
    assert {f"{run.pk}" for run in measured} == {*address.partition("ids=")[2].split(",")}
    assert alice_client.get(address).status_code == 200


def test_a_race_that_cannot_be_read_is_named_and_ends_nothing(alice_client: Client) -> None:
    fine, damaged = race(**GAINS), race(**GAINS)
    Run.objects.filter(pk=damaged.pk).update(result={"rounds": 3})
    text = words(page(alice_client, fine, damaged))
    assert "cannot be read" in text
    assert "recommended in 1 of 1 race" in text


def test_the_choice_offers_races_beside_a_race_and_measurements_beside_none(alice_client: Client) -> None:
    measured, first, second = make_measured_run(make_device()), race(**GAINS), race(**GAINS)
    beside = alice_client.get("/compare/", {"ids": first.pk}).content.decode()
    assert f'value="{second.pk}"' in beside
    assert "✓ 1.9" in beside
    assert f'value="{measured.pk}"' not in beside
    alone = alice_client.get("/compare/").content.decode()
    assert f'value="{measured.pk}"' in alone
    assert f'value="{first.pk}"' not in alone


def test_the_api_compares_batch_sizes_and_says_so_of_races() -> None:
    client = APIClient()
    client.force_authenticate(make_user("ann"))
    ids = [race(**GAINS).pk, race(**GAINS).pk]
    answer = client.post("/api/v1/compare/", {"ids": ids}, format="json")
    assert answer.status_code == 400
    assert "changes of the training to compare, and no batch size" in answer.content.decode()


def test_the_page_of_a_race_leads_to_others(client: Client) -> None:
    run = ended()
    client.force_login(make_user("eve"))
    assert f"/compare/?ids={run.pk}" in client.get(run.get_absolute_url()).content.decode()
