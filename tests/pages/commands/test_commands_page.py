"""The page of the registered commands starts them, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from analysis.models import Device, Run
from analysis.permissions import VIEWER
from tests.factories import make_card, make_device, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def device(settings, tmp_path: Path) -> Device:
    settings.COMMANDS_FILE = tmp_path / "commands.toml"
    settings.COMMANDS_FILE.write_text(
        '[[command]]\nname = "tagger"\ndescription = "Tags."\ncommand = ["python", "train.py", "{batch_size}"]\n'
    )
    return make_device()


def start(client: Client, device: Device, name: str = "tagger", **values: str) -> object:
    fields = {f"tagger-{field}": value for field, value in {"device": device.pk, **values}.items()}
    return client.post(f"/commands/{name}/", fields)


def test_each_command_is_shown_with_the_fields_it_offers(device: Device, alice_client: Client) -> None:
    text = alice_client.get("/commands/").content.decode()
    assert "python train.py &#x27;{batch_size}&#x27;" in text
    for name in ("device", "current_batch_size", "memory_limit_bytes", "whole_run"):
        assert f'name="tagger-{name}"' in text


def test_a_function_is_shown_as_one(device: Device, settings, alice_client: Client) -> None:
    settings.COMMANDS_FILE.write_text('[[command]]\nname = "tagger"\nfunction = "lab.train:make_step"\n')
    text = alice_client.get("/commands/").content.decode()
    assert '<pre tabindex="0">lab.train:make_step</pre>' in text
    assert "Run by the portal’s own Python" in text
    start(alice_client, device)
    assert "function lab.train:make_step" in alice_client.get(Run.objects.get().get_absolute_url()).content.decode()


def test_a_sent_form_queues_a_run_of_the_command(device: Device, alice_client: Client) -> None:
    response = start(alice_client, device, memory_limit_bytes="512MiB", whole_run="on")
    run = Run.objects.get()
    assert response.headers["Location"] == run.get_absolute_url()
    assert (run.model, run.needs_bytes, run.spec["whole_run"]) == ("tagger", 512 * 2**20, True)
    assert alice_client.get(run.get_absolute_url()).status_code == 200
    assert alice_client.get("/").status_code == 200


def test_a_wrong_value_is_shown_at_its_field_and_nothing_is_stored(device: Device, alice_client: Client) -> None:
    response = start(alice_client, device, memory_limit_bytes="much")
    assert response.status_code == 422
    assert "is not a size" in response.content.decode()
    assert not Run.objects.exists()


def test_a_command_that_is_not_registered_is_not_found(device: Device, alice_client: Client) -> None:
    assert start(alice_client, device, name="rm").status_code == 404


def test_a_viewer_cannot_start_one(device: Device) -> None:
    client = Client()
    client.force_login(make_user("vera", VIEWER))
    assert start(client, device).status_code == 403
    assert not Run.objects.exists()


def test_without_a_file_the_page_says_how_to_register_one(settings, alice_client: Client) -> None:
    settings.COMMANDS_FILE = None
    assert "MEMORYMARK_COMMANDS" in alice_client.get("/commands/").content.decode()


def test_a_device_whose_worker_is_silent_is_not_offered_beside_one_that_lives(
    device: Device, alice_client: Client
) -> None:
    living = make_card()
    text = alice_client.get("/commands/").content.decode()
    assert f'<option value="{living.pk}">' in text
    assert f'<option value="{device.pk}">' not in text
