"""What each role may open and do on the pages, and what everybody may where the operator lets them."""

import json
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from analysis.models import GpuPrice, Run, State
from analysis.permissions import MANAGER, OPERATOR, VIEWER
from analysis.runs import services
from engine.estimate.gpus import gpus
from memorymark_site.env import Rate
from tests.factories import make_device, make_measured_run, make_run, make_user
from tests.factories.estimates import make_stored_estimate
from tests.factories.pages import page, words

pytestmark = pytest.mark.django_db


def client_of(role: str | None, name: str = "p") -> Client:
    client = Client(headers={"accept": "text/html"})
    client.force_login(make_user(name, role))
    return client


READ_PAGES = ["/", "/runs/", "/estimates/", "/matrix/", "/trend/", "/fleet/", "/devices/", "/runs/export.csv"]


@pytest.mark.parametrize("path", READ_PAGES)
def test_a_page_is_for_whoever_may_read(path):
    assert client_of(VIEWER, "v").get(path).status_code == 200
    assert client_of(None, "n").get(path).status_code == 403
    assert Client(headers={"accept": "text/html"}).get(path).status_code == 302


@pytest.mark.parametrize(("path", "data"), [("/runs/new/", {}), ("/runs/change/", {"action": "cancel"})])
def test_a_viewer_is_refused_by_the_name_of_the_role_that_she_lacks(path, data):
    answer = client_of(VIEWER).post(path, data)
    assert answer.status_code == 403
    assert "lacks the role operator" in words(answer.content.decode())


def test_a_viewer_may_compare_the_runs_she_ticked():
    run = make_run()
    answer = client_of(VIEWER).post("/runs/change/", {"action": "compare", "run": str(run.pk)})
    assert answer.headers["Location"] == f"/compare/?ids={run.pk}"


def test_an_operator_cancels_her_own_run_and_no_other(alice, alice_client):
    device = make_device()
    own, other = make_run(device, requested_by=alice), make_run(device, requested_by=make_user("bob"))
    answer = alice_client.post(f"/runs/{other.pk}/cancel/", follow=True)
    assert "Only the person who started a run, or a GPU manager, may cancel it." in words(answer.content.decode())
    alice_client.post(f"/runs/{own.pk}/cancel/")
    assert dict(Run.objects.values_list("pk", "state")) == {own.pk: State.CANCELLED, other.pk: State.QUEUED}


@pytest.mark.parametrize(("role", "is_offered"), [(VIEWER, False), (OPERATOR, True)])
def test_what_may_not_be_done_is_not_offered(role, is_offered):
    client, run = client_of(role), make_measured_run(make_device())
    assert ("Find the largest batch size" in client.get("/").content.decode()) is is_offered
    assert (">Run again<" in page(client, run)) is is_offered
    assert ('value="retry"' in client.get("/runs/").content.decode()) is is_offered


def test_a_viewer_is_told_what_she_may_do_instead():
    assert "You can view everything here" in words(client_of(VIEWER).get("/").content.decode())


def test_cancel_is_offered_to_whoever_may_do_it(alice, alice_client):
    run = make_run(requested_by=alice)
    assert ">Cancel<" in page(alice_client, run)
    assert ">Cancel<" in page(client_of(MANAGER, "m"), run)
    assert ">Cancel<" not in page(client_of(OPERATOR, "bob"), run)


def test_a_refused_page_names_the_role_and_the_account_page_is_open_to_everybody():
    client = client_of(None)
    text = words(client.get("/runs/").content.decode())
    assert "Your account lacks the role viewer. A GPU manager can give it to you." in text
    assert client.get("/account/").status_code == 200
    assert client.post("/logout/").status_code == 302


OPEN = ["/", "/estimates/", "/matrix/"]
CLOSED = [
    *("/runs/", "/runs/export.csv", "/runs/export.json", "/trend/", "/fleet/", "/fleet/now/", "/devices/"),
    "/account/",
]
SECRETS = ("alice", "paper-7", "do not tell", "shelf-3", "secret-host")


@pytest.fixture
def run(alice, settings) -> Run:
    settings.PUBLIC_READ_ONLY = True
    run = make_measured_run(make_device("secret-host"), stack={"host": "secret-host"})
    Run.objects.update(requested_by=alice)
    services.run_annotate(run_id=run.pk, by=alice, name="paper-7", note="do not tell", tags=["shelf-3"])
    return run


def browser() -> Client:
    return Client(headers={"accept": "text/html"})


def test_the_setting_is_off_unless_it_is_set(db):
    assert [browser().get(path).status_code for path in OPEN] == [302] * len(OPEN)


def test_guests_read_pages_and_no_name_note_tag_or_host(run):
    for path in (*OPEN, run.get_absolute_url()):
        answer = browser().get(path)
        assert answer.status_code == 200, path
        assert [secret for secret in SECRETS if secret in answer.content.decode()] == [], path


def test_guests_read_that_a_run_was_reported_and_not_verified_but_not_by_whom_from_where(run, root):
    sender = {"reported_from": "secret-host", "is_trusted": False}
    Run.objects.update(**sender)
    for path in ("/", run.get_absolute_url(), f"{run.get_absolute_url()}advice/"):
        text = browser().get(path).content.decode()
        assert "reported, not trusted" in words(text), path
        assert [secret for secret in SECRETS if secret in text] == [], path


@pytest.mark.parametrize("path", CLOSED)
def test_exports_lists_and_the_fleet_stay_inside(run, path):
    assert Client().get(path).headers["Location"].startswith("/login/")


@pytest.mark.parametrize("rest", ["export.json", "export.csv", "live/"])
def test_of_a_run_the_page_alone_is_open(run, rest):
    assert Client().get(f"{run.get_absolute_url()}{rest}").status_code == 302


def test_a_run_without_an_answer_stays_inside(run):
    waiting = make_run(run.requested_device)
    assert Client().get(waiting.get_absolute_url()).headers["Location"].startswith("/login/")


def test_an_account_without_a_role_reads_what_everybody_may_and_no_more(run):
    client, waiting = Client(headers={"accept": "text/html"}), make_run(run.requested_device)
    client.force_login(make_user("nora", None))
    assert [client.get(path).status_code for path in (*OPEN, run.get_absolute_url())] == [200] * 4
    assert [client.get(path).status_code for path in ("/runs/", waiting.get_absolute_url())] == [403] * 2
    assert "do not tell" not in client.get(run.get_absolute_url()).content.decode()


def test_of_the_labs_own_prices_the_source_stays_inside(run):
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=1.0, source="offer of Mr. X", valid_from="2026-01-02")
    text = Client().get("/matrix/").content.decode()
    assert "$1.00" in text
    assert "Mr. X" not in text


def test_the_api_stays_inside(run):
    for path in ("/api/v1/runs/", f"/api/v1/runs/{run.pk}/", "/metrics"):
        assert Client().get(path).status_code == 401, path


def test_guests_change_nothing_and_are_offered_nothing(run):
    assert Client().post("/runs/new/", {}).status_code == 302
    assert Client().post("/").status_code == 405
    text = browser().get("/").content.decode()
    assert "<form" not in text
    assert "Log in" in words(text)


PATH, QUESTION = "/estimates/", "?model=bert&gpu=a10&current_batch_size=16"
SECRETS_OF_ESTIMATES = ("alice", "paper-7", "do not tell", "shelf-3", "Mr. X", "$0.01", "calibrated", "/runs/")
CLOSED_TO_GUESTS = ["/", "/runs/", "/matrix/", "/compare/", "/help/", "/what-to-change/", "/fleet/", "/trend/"]


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
    assert "<h1>Up to 89 fit an A10; batch size 16 leaves 82 % unused.</h1>" in response.content.decode()
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
        assert [secret for secret in SECRETS_OF_ESTIMATES if secret in text] == [], path


def test_own_configs_and_limits_answer_nobody(asking: Client) -> None:
    config = Path("engine/settings/catalog/configs/bert.json")
    text = config.read_text() if config.exists() else json.dumps({"model_type": "bert"})
    assert asking.get(PATH, {"model": "config", "config": text}).status_code == 400
    make_stored_estimate(memory_limit_bytes=2**33)
    assert "No estimate is stored" in words(asking.get(PATH + QUESTION).content.decode())


@pytest.mark.parametrize("path", CLOSED_TO_GUESTS)
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
    assert f"All {len(gpus())} GPUs fit batch size 16" in asking.get(f"{PATH}?model=bert&gpu=all").content.decode()
