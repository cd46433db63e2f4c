"""The API lists the registered commands and starts them by name."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from tests.factories import make_device

pytestmark = pytest.mark.django_db
PATH = "/api/v1/commands/"


@pytest.fixture(autouse=True)
def _registered(settings, tmp_path: Path) -> None:
    settings.COMMANDS_FILE = tmp_path / "commands.toml"
    settings.COMMANDS_FILE.write_text(
        '[[command]]\nname = "tagger"\ncommand = ["python", "train.py", "--api-key", "abc", "{batch_size}"]\n'
    )
    make_device()


def start(client: Client, name: str = "tagger", **body: Any) -> Any:
    return client.post(f"{PATH}{name}/runs/", {"device": "cpu", **body}, "application/json")


def test_commands_are_listed_without_their_secrets(alice_client: Client) -> None:
    (command,) = alice_client.get(PATH).json()["results"]
    assert (command["name"], command["command"][2:4]) == ("tagger", ["--api-key", "***"])
    assert "memory_limit_bytes" in command["settings"]


def test_a_command_is_queued_by_its_name(alice_client: Client) -> None:
    response = start(alice_client, memory_limit_bytes="512MiB")
    assert response.status_code == 202, response.content
    run = Run.objects.get()
    assert response.headers["Location"].endswith(f"/api/v1/runs/{run.pk}/")
    assert (run.model, run.needs_bytes) == ("tagger", 512 * 2**20)


def test_speeds_are_compared_unless_that_is_turned_off(alice_client: Client) -> None:
    for body in ({}, {"compare_speed": False}):
        assert start(alice_client, **body).status_code == 202
    assert [run.spec["compare_speed"] for run in Run.objects.order_by("pk")] == [True, False]
    assert start(alice_client, compare_speed="no").status_code == 400


def test_a_command_that_is_not_registered_is_not_found(alice_client: Client) -> None:
    response = start(alice_client, "other")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert not Run.objects.exists()


def test_a_function_is_listed_as_one_and_started_like_a_command(alice_client: Client, settings) -> None:
    settings.COMMANDS_FILE.write_text('[[command]]\nname = "tagger"\nfunction = "lab.train:make_step"\n')
    (command,) = alice_client.get(PATH).json()["results"]
    assert (command["function"], command["batch"]) == ("lab.train:make_step", "function")
    assert "whole_run" not in command["settings"]
    assert start(alice_client).status_code == 202
    assert Run.objects.get().spec["function"] == "lab.train:make_step"


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("tagger", {"command": ["sh"]}, "command"),
        ("tagger", {"max_batch_size": 0}, "max_batch_size"),
        ("tagger", {"nonsense": 1}, "nonsense"),
    ],
)
def test_what_is_not_allowed_is_named(alice_client: Client, name: str, body: dict[str, Any], field: str) -> None:
    response = start(alice_client, name, **body)
    assert response.status_code in (400, 422)
    assert field in response.content.decode()
    assert not Run.objects.exists()


def test_a_cloned_run_keeps_its_command_and_takes_the_changes(alice_client: Client) -> None:
    start(alice_client, current_batch_size=4)
    run = Run.objects.get()
    response = alice_client.post(f"/api/v1/runs/{run.pk}/clone/", {"max_batch_size": 64}, "application/json")
    assert response.status_code == 202, response.content
    clone = Run.objects.exclude(pk=run.pk).get()
    assert (clone.model, clone.spec["current_batch_size"], clone.spec["max_batch_size"]) == ("tagger", 4, 64)
