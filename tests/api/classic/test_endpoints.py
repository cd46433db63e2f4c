"""The classic endpoints, word for word, and who may start a run through them."""

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from analysis.api import waiting
from analysis.api.classic import views as classic
from analysis.models import Device, Run, State
from analysis.runs import services
from engine.settings.catalog import WORKLOADS
from engine.settings.step_settings import PRECISIONS
from tests.factories import make_card, make_device, make_result

pytestmark = pytest.mark.django_db

NOT_OFFERED = f"precision: 'fp8' is not offered; one of {', '.join(PRECISIONS)}"


JSON = "application/json"


def analyze(client: Client, body: Any, **headers: str) -> Any:
    text = body if isinstance(body, str) else json.dumps(body)
    return client.post("/analyze", text, content_type=JSON, headers=headers)


def error(message: str) -> dict[str, str]:
    return {"status": "error", "error": message}


@pytest.fixture
def device() -> Device:
    return make_device()


@pytest.fixture
def work(device: Device, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Run], object]], None]:
    """Let a worker claim the run, and end it as given, while the request waits."""

    def set_up(end: Callable[[Run], object]) -> None:
        def sleep(seconds: float) -> None:
            run = services.run_claim(device=device, owner="worker")
            assert run
            end(run)

        monkeypatch.setattr(waiting, "sleep", sleep)

    return set_up


def finish(run: Run) -> None:
    services.run_finish(run_id=run.pk, token=run.token, result=make_result().to_dict())


def test_analyze_waits_for_the_run_and_answers_its_data(alice_client, work):
    work(finish)
    answer = analyze(alice_client, {"model_name": "bert"})
    body = answer.json()
    assert (answer.status_code, body["status"]) == (200, "success")
    assert (body["data"]["run_id"], body["data"]["optimal_batch_size"]) == (Run.objects.get().pk, 8)


def test_the_run_is_kept_with_who_asked_and_what_was_asked(alice_client, alice, work):
    work(finish)
    analyze(alice_client, {"model_name": "gpt2", "precision": "bf16", "memory_limit_bytes": "3GiB"})
    run = Run.objects.get()
    assert (run.model, run.precision, run.requested_by, run.state) == ("gpt2", "bf16", alice, State.FINISHED)
    assert run.spec["memory_limit_bytes"] == 3 * 1024**3


def test_a_limit_above_the_device_is_a_400_and_stores_nothing(alice_client):
    make_device()
    answer = analyze(alice_client, {"model_name": "gpt2", "memory_limit_bytes": "900GiB"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("memory_limit_bytes: 900.0 GiB is above what")
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "Request body is required"),
        ("{", "Request body must be valid JSON"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "Request body must be valid JSON"),
        ("[" * 100_000, "Request body must be valid JSON"),
        ([1], "Request body must be a JSON object"),
        ({}, "model_name is required"),
        ({"model_name": None}, "model_name is required"),
        ({"model_name": "bart"}, f"Invalid model_name. Must be one of: {', '.join(WORKLOADS)}"),
        ({"model_name": ["bert"]}, f"Invalid model_name. Must be one of: {', '.join(WORKLOADS)}"),
        ({"model_name": "bert", "precision": "fp8"}, NOT_OFFERED),
        ({"model_name": "bert", "current_batch_size": 0}, "current_batch_size: 0 is out of range; from 1 to 1,048,576"),
        ({"model_name": "bert", "device": "cuda"}, "device: no enabled device cuda; available: cpu"),
    ],
)
def test_what_is_wrong_with_a_request_is_told_and_nothing_is_stored(alice_client, device, body, message):
    answer = analyze(alice_client, body)
    assert (answer.status_code, answer.json()) == (400, error(message))
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("key", "advice"),
    [("max_batchsize", "did you mean max_batch_size?"), ("colour", "allowed are model_name, device, ")],
)
def test_an_unknown_key_is_named_with_the_nearest_or_those_that_are_allowed(alice_client, device, key, advice):
    answer = analyze(alice_client, {"model_name": "bert", key: "bert"})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(f"{key}: unknown key; {advice}")


def test_who_prefers_not_to_wait_gets_the_runs_address_at_once(alice_client, device):
    answer = analyze(alice_client, {"model_name": "bert"}, prefer="return=minimal, respond-async")
    run = Run.objects.get()
    url = f"http://testserver/runs/{run.pk}/"
    assert (answer.status_code, answer.headers["Location"]) == (202, url)
    assert answer.json() == {"status": "accepted", "run_id": run.pk, "url": url}


def test_when_the_wait_runs_out_the_runs_address_is_the_answer(alice_client, device, settings):
    settings.ANALYZE_WAIT_SECONDS = 0.01
    answer = analyze(alice_client, {"model_name": "bert"})
    assert (answer.status_code, answer.json()["run_id"]) == (202, Run.objects.get().pk)


def test_when_enough_requests_wait_a_further_one_does_not(alice, alice_client, device, settings):
    settings.ANALYZE_WAITING_REQUESTS = 1
    with waiting.slots.place(alice) as has_place:
        assert has_place
        assert analyze(alice_client, {"model_name": "bert"}).status_code == 202


@pytest.mark.parametrize(("threads", "places"), [(None, 4), (16, 4), (8, 4), (3, 1), (2, 1), (1, 0)])
def test_half_of_the_servers_threads_never_wait(settings, threads, places):
    settings.WEB_THREADS = threads
    assert waiting.slots.places() == places


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda run: services.run_fail(run_id=run.pk, token=run.token, code="x", message="the loss"), "the loss"),
        (lambda run: services.run_mark_cancelled(run_id=run.pk, token=run.token), "The run was cancelled"),
    ],
)
def test_a_run_that_ends_without_a_result_is_a_500_that_says_why(alice_client, work, end, message):
    work(end)
    answer = analyze(alice_client, {"model_name": "bert"})
    assert (answer.status_code, answer.json()) == (500, error(f"Analysis failed: {message}"))


def test_a_class_of_card_may_be_asked_for(alice_client):
    make_card()
    analyze(alice_client, {"model_name": "bert", "device_class": "A100"}, prefer="respond-async")
    assert Run.objects.get().requested_device_class == "A100"
    assert "device_class" in analyze(alice_client, {"model_name": "bert", "device_class": "H100"}).json()["error"]


def test_health_answers_without_login_and_before_any_device_is_known(client):
    body = client.get("/health").json()
    contract = ["status", "gpu_available", "gpu_name", "gpu_memory_total_gb", "device", "timestamp"]
    assert list(body) == [*contract, "gpu_memory_total_bytes", "version"]
    assert (body["status"], body["device"], body["timestamp"][-1:]) == ("healthy", None, "Z")


def test_the_root_answers_a_program_with_its_index(client):
    answer = client.get("/", headers={"accept": JSON})
    assert "POST /analyze" in answer.json()["endpoints"]
    assert answer.headers["Vary"].startswith("Accept")


@pytest.mark.parametrize("accept", ["*/*", "", "text/html;q=0.5,application/json"])
def test_the_root_answers_every_client_that_is_no_browser_with_its_index(client, accept):
    answer = client.get("/", headers={"accept": accept} if accept else {})
    assert (answer.status_code, answer.json()["name"]) == (200, "MemoryMark")


@pytest.mark.parametrize("path", ["/health", "/models"])
@pytest.mark.parametrize("accept", ["text/html", "image/png", "application/xml;q=0.9"])
def test_what_is_open_to_all_answers_json_whatever_is_accepted(client, path, accept):
    answer = client.get(path, headers={"accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, JSON)


@pytest.mark.parametrize("accept", ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"])
def test_the_root_sends_a_browser_to_the_login_and_then_to_the_page(client, alice, accept):
    headers = {"accept": accept}
    assert client.get("/", headers=headers).headers["Location"] == "/login/?next=/"
    client.force_login(alice)
    answer = client.get("/", headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("method", "path"), [("post", "/health"), ("delete", "/models"), ("get", "/analyze"), ("post", "/"), ("put", "/")]
)
def test_a_method_that_is_not_allowed_is_a_405_of_the_same_form(alice_client, method, path):
    answer = getattr(alice_client, method)(path)
    assert (answer.status_code, answer.json()) == (405, error(f'Method "{method.upper()}" not allowed.'))
    assert answer.headers["Allow"]


@pytest.mark.parametrize(("path", "accept"), [("/nowhere", JSON), ("/analyze/", "*/*"), ("/models/x", "*/*")])
def test_an_unknown_address_is_a_404_of_the_same_form_to_a_program(client, path, accept):
    answer = client.get(path, headers={"accept": accept})
    assert (answer.status_code, answer.json()) == (404, error("Not found"))


def test_a_body_that_is_too_large_is_refused(alice_client, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    answer = analyze(alice_client, {"model_name": "bert"})
    assert answer.status_code == 413
    assert answer.json()["error"].startswith("The body is larger than this server accepts")


def test_a_form_without_its_token_is_refused_with_a_page_of_ours(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    answer = client.post("/runs/new/", {"model": "bert"})
    assert answer.status_code == 403
    assert "CSRF verification failed" not in answer.content.decode()
    assert client.post("/").status_code == 405


def test_an_unknown_address_is_a_page_to_a_browser(client):
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    assert client.get("/nowhere", headers=browser).headers["Content-Type"].startswith("text/html")
    assert client.get("/nowhere", headers={"Accept": "*/*"}).json() == {"status": "error", "error": "Not found"}


def test_a_bug_is_a_500_of_the_same_form_and_shows_nothing_of_it(monkeypatch):
    def fall() -> None:
        raise ZeroDivisionError("the secret")

    monkeypatch.setattr(classic, "models_data", fall)
    answer = Client(raise_request_exception=False).get("/models")
    assert (answer.status_code, answer.json()) == (500, error("Internal server error"))


BODY = '{"model_name": "bert"}'


def post(client: Client, *, content_type: str = "application/json", remote: str = "127.0.0.1", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = client.post(
        "/analyze", BODY, content_type=content_type, headers={"prefer": "respond-async", **named}, REMOTE_ADDR=remote
    )
    assert answer.status_code == 202 or answer.json()["status"] == "error"
    return answer.status_code


@pytest.fixture
def local(settings) -> None:
    settings.SERVES_THIS_MACHINE_ONLY = True
    make_device()


def test_a_program_on_this_machine_needs_no_login(client, local):
    assert post(client) == 202
    assert Run.objects.get().requested_by is None


def test_a_run_that_belongs_to_nobody_is_short_and_waits_for_none(client, alice_client, local):
    assert post(client) == 202
    assert Run.objects.get().spec["time_budget_seconds"] == 600
    refused = client.post("/analyze", BODY, content_type="application/json")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert "run 1 is not over" in refused.json()["error"].replace(str(Run.objects.get().pk), "1")
    assert post(alice_client) == 202
    assert Run.objects.count() == 2


def test_a_long_run_needs_somebody_it_belongs_to(client, local):
    body = '{"model_name": "bert", "time_budget_seconds": 601}'
    refused = client.post("/analyze", body, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]) == (400, "time_budget_seconds: at most 600 without a login")


@pytest.mark.parametrize("remote", ["127.0.0.1", "::1", "127.8.8.8"])
def test_every_loopback_address_is_this_machine(client, local, remote):
    assert post(client, remote=remote) == 202


@pytest.mark.parametrize(
    "circumstances",
    [
        {"remote": "192.0.2.7"},
        {"remote": ""},
        {"x_forwarded_for": "192.0.2.7"},
        {"forwarded": "for=192.0.2.7"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
    ],
)
def test_whatever_may_come_from_elsewhere_needs_a_login(client, local, circumstances):
    assert post(client, **circumstances) == 401
    assert not Run.objects.exists()


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_of_another_type_is_named_as_what_is_wrong(client, alice_client, local, content_type):
    for each in (client, alice_client):
        answer = each.post("/analyze", BODY, content_type=content_type)
        message = f"The body must be JSON, not {content_type}: send it with the header Content-Type: application/json"
        assert (answer.status_code, answer.json()["error"]) == (415, message)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "circumstances",
    [{"sec_fetch_site": "same-origin"}, {"sec_fetch_site": "none"}, {"origin": "http://testserver"}],
)
def test_the_servers_own_pages_need_no_login_here(client, local, circumstances):
    assert post(client, **circumstances) == 202


def test_a_server_for_others_asks_everybody_to_sign_in(client):
    answer = client.post("/analyze", BODY, content_type="application/json")
    assert answer.status_code == 401
    assert answer.json() == {"status": "error", "error": "Authentication credentials were not provided."}
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="MemoryMark", Basic realm="MemoryMark"'


def test_a_name_and_a_password_will_do(client, alice):
    make_device()
    credentials = b64encode(b"alice:alice's password").decode()
    assert post(client, authorization=f"Basic {credentials}", remote="192.0.2.7") == 202
    assert Run.objects.get().requested_by == alice


def test_a_wrong_password_will_not(client, alice, local):
    credentials = b64encode(b"alice:bob's password").decode()
    assert post(client, authorization=f"Basic {credentials}") == 401


def test_a_session_without_its_csrf_token_will_not(alice, local):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert post(client) == 403
