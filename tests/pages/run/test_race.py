"""A race, of a model or of a script, is stored as a kind of its own; its page has the table and what to paste."""

import html

import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from analysis.lists.comparison.compared_run import ComparedRun
from analysis.lists.comparison.differences import setting_rows
from analysis.lists.comparison.races import compared_races
from analysis.models import Run, RunLog, State
from analysis.news.messages import describe_end
from analysis.runs import services
from analysis.runs.earlier.races import OF_SCRIPTS, newest_race
from analysis.runs.queue.placement import Placement
from engine.questions.documents.raced import OwnRaced
from engine.questions.faster.spec import FasterSpec
from engine.questions.kinds import RunKind, kind_of, read_result
from engine.trainings.script.spec import TuneSpec
from tests.engine.fake_racer import FAST, raced
from tests.engine.questions.answers.own_race_documents import document_of
from tests.factories import make_device, make_measured_run, make_user
from tests.factories.reports import SendingClient, body_of, make_run_key
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


def reported(alice: User, name: str) -> Run:
    answer = SendingClient(alice).send_result(body_of(document_of(name)))
    assert answer.status_code == 201, answer.content
    return Run.objects.get(pk=answer.json()["id"])


def page_of(client: Client, run: Run) -> str:
    return html.unescape(client.get(run.get_absolute_url(), headers={"accept": "text/html"}).content.decode())


def test_a_reported_race_of_a_script_has_a_page_with_its_command_and_lines(alice_client: Client, alice: User) -> None:
    run = reported(alice, "workers first")
    assert (run.kind, run.model, run.largest_batch_size, run.state) == (RunKind.OWN_RACE, "train.py", None, "finished")
    page = page_of(alice_client, run)
    assert document_of("workers first")["headline"] in page
    assert "python train.py" in page
    assert "limited to" not in page
    assert "Largest batch" not in page
    assert "DataLoader(..., num_workers=" in page
    assert "torch.optim.Adam(..., fused=True)" in page
    assert "is the limit: " in page
    assert "with Loader workers in both" in page
    assert "Race again" not in page


def test_a_batch_size_that_is_a_guess_is_not_stated(alice_client: Client, alice: User) -> None:
    document = document_of("one that gains")
    size = document["today"]["batch_size"]
    for is_guessed, title in ((False, f"At batch {size}"), (True, "At the script’s own batch size")):
        today = {**document["today"], "is_batch_size_guessed": is_guessed}
        answer = SendingClient(alice).send_result(body_of({**document, "today": today}))
        run = Run.objects.get(pk=answer.json()["id"])
        page = page_of(alice_client, run)
        assert (title in page, run.current_batch_size) == (True, None if is_guessed else size)
        assert (f"batch {size}" in page) is not is_guessed


def test_lists_filters_and_comparisons_have_the_batch_size_that_a_script_trained_with_and_not_the_default(
    alice_client: Client, alice: User
) -> None:
    run, own = reported(alice, "one that gains"), document_of("one that gains")["today"]["batch_size"]
    assert own != run.spec["current_batch_size"]
    assert run.current_batch_size == own
    api = APIClient()
    api.force_authenticate(alice)
    for size, found in ((own, [(run.pk, own)]), (run.spec["current_batch_size"], [])):
        answer = api.get(f"/api/v1/runs/?current_batch_size={size}").json()["results"]
        assert [(each["id"], each["current_batch_size"]) for each in answer] == found
    rows = setting_rows([each.subject for each in compared_races([run])])
    assert [row.values for row in rows if row.name.startswith("Your batch size today")] == [(f"{own}",)]
    assert f",{own}," in b"".join(alice_client.get("/runs/export.csv?kind=own_race")).decode()


def test_the_batch_size_of_a_script_that_names_none_is_unknown_until_its_result(alice: User) -> None:
    SendingClient(alice).begin(make_run_key(), kind="own_race", spec=document_of("one that gains")["spec"])
    run = Run.objects.get()
    assert run.current_batch_size is None
    [row] = [row for row in setting_rows([ComparedRun(run, {}, None)]) if row.name.startswith("Your batch size today")]
    assert not row.known


def test_the_lines_on_the_page_are_written_from_the_facts_and_not_taken_from_the_document(
    alice_client: Client, alice: User
) -> None:
    run = reported(alice, "one that gains")
    result = run.result or {}
    result["lines"] = result["rows"][0]["lines"] = ["os.system('echo owned')"]
    result["rows"][0]["lines"] = "os.system('echo owned')"
    Run.objects.filter(pk=run.pk).update(result=result)
    page = page_of(alice_client, run)
    assert "torch.optim.Adam(..., fused=True)" in page
    assert "echo owned" not in page


def test_its_events_are_followed_while_it_runs(alice_client: Client, alice: User) -> None:
    sender, run_key, spec = SendingClient(alice), make_run_key(), document_of("one that gains")["spec"]
    assert sender.begin(run_key, kind="own_race", spec=spec).status_code in (200, 201)
    timing = {"event": "timing", "seconds": 1.0, "stage": "selection", "round": 1, "batch_sizes": []}
    log = {"event": "log", "seconds": 2.0, "level": "info", "message": "round 1: today 387.1 samples/s"}
    assert sender.send_events(run_key, 0, timing, log).status_code == 200
    run = Run.objects.get()
    assert [line.message for line in RunLog.objects.of(run)] == [log["message"]]
    page = page_of(alice_client, run)
    assert "Racing what makes train.py faster" in page
    assert "limited to" not in page


def test_a_race_of_a_script_of_an_older_form_is_refused(alice: User) -> None:
    older = document_of("one that gains")
    del older["facts"]
    answer = SendingClient(alice).send_result(body_of(older))
    assert answer.status_code == 400
    assert "race it again" in answer.content.decode()
    assert not Run.all_runs.exists()


def test_the_page_of_a_script_names_its_newest_race_but_none_of_a_stranger(alice_client: Client, alice: User) -> None:
    run = tuned(make_timed_result(), TuneSpec(COMMAND, current_batch_size=4))
    race = reported(alice, "one that gains")
    spec = {**race.spec, **{name: run.spec[name] for name in ("command", "directory")}}
    Run.objects.filter(pk=race.pk).update(device=run.device, spec=spec, current_batch_size=run.current_batch_size)
    link = f'<a href="{race.get_absolute_url()}">Run {race.pk}</a>'
    assert link not in page_of(alice_client, run)
    Run.objects.filter(pk=race.pk).update(is_trusted=True)
    page = page_of(alice_client, run)
    assert document_of("one that gains")["headline"].partition(";")[0] in page
    assert f"runs a year. {link}" in page
    Run.objects.filter(pk=race.pk).update(current_batch_size=race.current_batch_size)
    assert link not in page_of(alice_client, run), "it was raced at another batch size"


@pytest.mark.parametrize("owner", ["alice", None])
def test_an_untrusted_race_answers_for_its_own_sender_alone_and_not_for_a_run_without_an_owner(
    alice: User, owner: str | None
) -> None:
    run = tuned(make_timed_result(), TuneSpec(COMMAND, current_batch_size=4), requested_by=alice if owner else None)
    race = reported(alice, "one that gains")
    spec = {**race.spec, **{name: run.spec[name] for name in ("command", "directory")}}
    same = {"device": run.device, "spec": spec, "current_batch_size": run.current_batch_size}
    Run.objects.filter(pk=race.pk).update(**same, requested_by=run.requested_by)
    assert newest_race(run, OF_SCRIPTS) == (race if owner else None)


def test_a_script_on_several_hosts_is_offered_no_race(alice_client: Client, alice: User) -> None:
    run = tuned(make_timed_result(), TuneSpec(("torchrun", "--nnodes=2", *COMMAND[1:])))
    page = page_of(alice_client, run)
    assert '<a href="#change">' in page
    assert "What makes it faster" not in page


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing that gains", "nothing found"),
        ("losses that are not repeatable", "nothing to race"),
        ("losses that differ together", "nothing recommended"),
        ("other programs", "nothing claimed"),
    ],
)
def test_why_nothing_is_recommended_is_told_in_short(name: str, said: str) -> None:
    assert OwnRaced.from_dict(document_of(name)).in_short == said


def test_a_portal_starts_no_race_of_a_script(alice_client: Client, alice: User) -> None:
    api = APIClient()
    api.force_authenticate(alice)
    answer = api.post("/api/v1/runs/", {"kind": "own_race", "model": "bert-tiny"}, format="json")
    assert answer.status_code == 400
    assert "where it is" in answer.content.decode()
    run = reported(alice, "one that gains")
    assert api.post(f"/api/v1/runs/{run.pk}/clone/", {}, format="json").status_code == 409
    alice_client.post(f"{run.get_absolute_url()}repeat/")
    assert Run.objects.count() == 1


def test_lists_name_what_it_found_and_compare_offers_other_races(alice_client: Client, alice: User) -> None:
    run = reported(alice, "one that gains")
    listed = html.unescape(alice_client.get("/runs/?kind=own_race", headers={"accept": "text/html"}).content.decode())
    assert "train.py" in listed
    exported = b"".join(alice_client.get("/runs/export.csv?kind=own_race"))
    assert b"own_race" in exported
    measured = make_measured_run(make_device("other"))
    offered = alice_client.get(f"/compare/?ids={run.pk}").content.decode()
    assert f'value="{run.pk}" checked' in offered
    assert f'value="{measured.pk}"' not in offered
