"""A race is requested by the API, stored as a kind of its own, and its page has the table and the lines to paste."""

import pytest
from django.test import Client
from rest_framework.test import APIClient

from analysis.models import Run, State
from analysis.news.messages import describe_end
from analysis.runs import services
from analysis.runs.queue.placement import Placement
from engine.faster.spec import FasterSpec
from engine.kinds import RunKind, kind_of, read_result
from engine.tune.spec import TuneSpec
from tests.engine.fake_racer import FAST, raced
from tests.factories import make_device, make_measured_run, make_user
from tests.factories.speeds import make_timed_result
from tests.factories.tuned import COMMAND, tuned

pytestmark = pytest.mark.django_db


def ended() -> Run:
    found, _ = raced(factors=FAST, fails=frozenset({"compile"}))
    run = services.run_create(spec=found.spec, place=Placement(device=make_device()), requested_by=make_user("ann"))
    claimed = services.run_claim(device=run.requested_device, owner="tester", run_id=run.pk)
    assert claimed is not None
    services.run_finish(run_id=claimed.pk, token=claimed.token, result=found.to_dict(), exit_status=0)
    return Run.objects.get(pk=run.pk)


def test_the_page_of_a_race_says_what_is_faster_and_gives_the_lines(alice_client: Client) -> None:
    run = ended()
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert read_result(run.result or {}).headline in page  # type: ignore[union-attr]
    assert "fused=True" in page
    assert "the worker process ended with status -11" in page
    assert "same to the bit" in page
    assert "Speed by peak memory at batch" in page


def test_a_race_is_stored_as_a_kind_of_its_own_and_finds_no_batch_size() -> None:
    run = ended()
    assert (run.kind, run.largest_batch_size, run.state) == (RunKind.RACE, None, "finished")
    assert kind_of(run.result or {}) == RunKind.RACE


def test_the_api_takes_a_race_and_refuses_a_change_that_is_none() -> None:
    make_device()
    client = APIClient()
    client.force_authenticate(make_user("ann"))
    body = {"kind": "race", "model": "bert-tiny", "device": "cpu", "tried": "fused,bf16"}
    answer = client.post("/api/v1/runs/", body, format="json")
    assert answer.status_code == 202, answer.content
    run = Run.objects.get(pk=answer.json()["id"])
    assert FasterSpec.from_dict(run.spec).wanted == ("fused", "bf16")
    refused = client.post("/api/v1/runs/", {**body, "tried": "turbo"}, format="json")
    assert refused.status_code == 400
    assert "turbo" in refused.content.decode()


def test_the_settings_of_a_measurement_race_by_a_button_on_its_page(alice_client: Client) -> None:
    run = make_measured_run()
    assert "Race the changes" in alice_client.get(run.get_absolute_url()).content.decode()
    started = alice_client.post(f"{run.get_absolute_url()}race/")
    race = Run.objects.get(kind=RunKind.RACE)
    assert started.url == race.get_absolute_url()
    assert (race.requested_device, race.spec["optimizer"]) == (run.device, run.spec["optimizer"])
    Run.objects.filter(pk=race.pk).update(state=State.FINISHED, device=run.device, result=raced()[0].to_dict())
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert f'<a href="{race.get_absolute_url()}">Run {race.pk}</a>' in page
    assert "Race the changes again" in page


def test_what_a_race_saves_is_computed_with_the_assumptions_of_the_measurements_page(alice_client: Client) -> None:
    run = make_measured_run()
    alice_client.post(f"{run.get_absolute_url()}race/")
    found, _ = raced(factors=FAST)
    Run.objects.filter(kind=RunKind.RACE).update(state=State.FINISHED, device=run.device, result=found.to_dict())
    page = alice_client.get(run.get_absolute_url(), {"price": "3"}).content.decode()
    assert found.headline.partition("; saves")[0] in page
    assert "; saves" not in page
    assert "The saving assumes $3.00/h" in page


def test_news_of_a_race_say_what_its_saving_assumes() -> None:
    run = ended()
    said = describe_end(run, State.FINISHED)
    assert "; saves $" in said
    assert said.endswith("The saving assumes $0.60/h, 2 h a run, 100 runs a year.")


def test_a_race_that_runs_says_from_the_start_what_its_time_budget_leaves_at_most(client: Client) -> None:
    spec, ann = FasterSpec(model="bert-tiny", time_budget_seconds=1_800.0), make_user("ann")
    run = services.run_create(spec=spec, place=Placement(device=make_device()), requested_by=ann)
    assert services.run_claim(device=run.requested_device, owner="tester", run_id=run.pk) is not None
    client.force_login(ann)
    page = client.get(run.get_absolute_url()).content.decode()
    assert "At most 30 min left (its time budget)" in page
    assert "data-left-most" in page
    assert "estimating how long" not in page
    api = APIClient()
    api.force_authenticate(ann)
    assert 1_700 < api.get(f"/api/v1/runs/{run.pk}/").json()["seconds_left"] <= 1_800


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.INTERRUPTED])
def test_a_race_that_ended_without_a_result_is_run_again_but_no_form_changes_it(
    alice_client: Client, state: State
) -> None:
    run = ended()
    Run.objects.filter(pk=run.pk).update(state=state, result=None)
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert "Run again" in page
    assert "Change and run" not in page


def test_a_race_that_cannot_be_read_leaves_the_page_of_its_measurement(alice_client: Client) -> None:
    run = make_measured_run()
    alice_client.post(f"{run.get_absolute_url()}race/")
    Run.objects.filter(kind=RunKind.RACE).update(state=State.FINISHED, device=run.device, result={"rounds": 3})
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert "cannot be read" not in page
    assert f">Run {Run.objects.get(kind=RunKind.RACE).pk}</a>" in page


def test_a_race_of_a_measurement_is_allowed_and_costs_what_that_was(alice_client: Client) -> None:
    run = make_measured_run(price_per_hour_usd=3.0)
    Run.objects.filter(pk=run.pk).update(accepts_shared_device=True, uses_device_price=False)
    alice_client.post(f"{run.get_absolute_url()}race/")
    race = Run.objects.get(kind=RunKind.RACE)
    assert (race.accepts_shared_device, race.uses_device_price, race.spec["price_per_hour_usd"]) == (True, False, 3.0)


def test_a_race_of_some_changes_does_not_answer_for_all(alice_client: Client) -> None:
    run = make_measured_run()
    for _ in range(2):
        alice_client.post(f"{run.get_absolute_url()}race/")
        Run.objects.filter(kind=RunKind.RACE).update(state=State.FINISHED, device=run.device)
    whole, partial = Run.objects.filter(kind=RunKind.RACE).order_by("pk")
    Run.objects.filter(kind=RunKind.RACE).update(result=raced()[0].to_dict())
    Run.objects.filter(pk=partial.pk).update(spec={**partial.spec, "tried": "zero-grad"})
    assert (
        f'<a href="{whole.get_absolute_url()}">Run {whole.pk}</a>'
        in alice_client.get(run.get_absolute_url()).content.decode()
    )


def test_only_settings_of_a_model_race(alice_client: Client) -> None:
    run = tuned(make_timed_result(), TuneSpec(COMMAND, current_batch_size=4, name="train"))
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert "memorymark tune --faster --current-batch-size 4 -- python train.py &#x27;{batch_size}&#x27;" in page
    alice_client.post(f"{run.get_absolute_url()}race/")
    assert not Run.objects.filter(kind=RunKind.RACE).exists()
