"""The same request sent twice stores one run."""

import threading

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from analysis.models import IdempotencyKey, Run
from tests.factories import make_device, make_measured_run, make_user

pytestmark = pytest.mark.django_db

JSON = "application/json"
BODY = {"model": "bert-tiny"}


def post(client: Client, body: object = None, key: str = "build 7", path: str = "/api/v1/runs/"):
    return client.post(path, BODY if body is None else body, content_type=JSON, headers={"Idempotency-Key": key})


@pytest.fixture(autouse=True)
def _device(request):
    if "transactional_db" not in request.fixturenames:
        make_device()


def test_a_request_sent_again_is_answered_with_the_same_run(alice_client):
    answers = [post(alice_client), post(alice_client, {"model": "bert-tiny"})]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert [answer.json()["id"] for answer in answers] == [Run.objects.get().pk] * 2
    assert [answer.headers.get("Idempotent-Replayed") for answer in answers] == [None, "true"]


def test_the_order_of_a_bodys_members_says_nothing(alice_client):
    post(alice_client, {"model": "bert-tiny", "precision": "bf16"})
    assert post(alice_client, {"precision": "bf16", "model": "bert-tiny"}).headers["Idempotent-Replayed"] == "true"


def test_a_key_is_not_taken_for_another_request(alice_client):
    post(alice_client)
    answer = post(alice_client, {"model": "bert"})
    assert (answer.status_code, answer.json()["code"], Run.objects.count()) == (422, "key_reused", 1)


def test_a_key_holds_for_one_address(alice_client):
    run = make_measured_run(make_device("other"))
    assert post(alice_client, {}, path=f"/api/v1/runs/{run.pk}/retry/").status_code == 202
    again = post(alice_client, {}, path=f"/api/v1/runs/{run.pk}/retry/")
    assert (again.headers["Idempotent-Replayed"], Run.objects.count()) == ("true", 2)
    assert post(alice_client, {}, path=f"/api/v1/runs/{run.pk}/clone/").status_code == 422


def test_two_people_may_choose_the_same_key(alice_client):
    bob = Client()
    bob.force_login(make_user("bob"))
    assert post(alice_client).json()["id"] != post(bob).json()["id"]


def test_a_request_that_was_refused_leaves_its_key_free(alice_client):
    assert post(alice_client, {"model": "bort"}).status_code == 400
    assert post(alice_client).status_code == 202


@pytest.mark.parametrize("key", ["", "x" * 256, "ключ", "a\tb"])
def test_a_key_that_is_none_is_refused(alice_client, key):
    answer = post(alice_client, key=key)
    assert (answer.status_code, answer.json()["code"], Run.objects.count()) == (400, "bad_key", 0)


def test_that_the_run_was_deleted_meanwhile_is_the_answer_until_it_is_restored(alice_client):
    first = post(alice_client).json()["id"]
    Run.objects.update(deleted_at=timezone.now())
    answer = post(alice_client)
    assert (answer.status_code, answer.json()["code"]) == (409, "run_deleted")
    assert f"POST /api/v1/runs/{first}/restore/" in answer.json()["detail"]
    assert alice_client.post(f"/api/v1/runs/{first}/restore/", content_type=JSON).status_code == 200
    assert post(alice_client).json()["id"] == first


def test_a_key_that_retention_removed_is_a_new_one(alice_client):
    post(alice_client)
    IdempotencyKey.objects.all().delete()
    assert post(alice_client).headers.get("Idempotent-Replayed") is None
    assert Run.objects.count() == 2


def test_two_at_once_give_one_run(transactional_db):
    make_device()
    alice = make_user("alice")
    answers = []

    def ask() -> None:
        client = Client()
        client.force_login(alice)
        answers.append(post(client))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [202] * 4
    assert {answer.json()["id"] for answer in answers} == {Run.objects.get().pk}
    assert IdempotencyKey.objects.count() == 1
