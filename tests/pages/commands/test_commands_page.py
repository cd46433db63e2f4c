"""The page of the registered commands starts them, and nothing else."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.models import Device, Run, State
from analysis.runs.commands import spec_to_start
from tests.factories import make_card, make_device

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


def test_the_limit_alone_is_found_by_a_button_beside_the_full_run(device: Device, alice_client: Client) -> None:
    start(alice_client, device, compare_speed="on")
    alice_client.post(
        "/commands/tagger/", {"tagger-device": device.pk, "tagger-compare_speed": "on", "limit_only": "1"}
    )
    assert [run.spec["compare_speed"] for run in Run.objects.order_by("pk")] == [True, False]


def test_the_price_of_a_comparison_is_that_of_the_newest_run(device: Device, alice_client: Client) -> None:
    begun = timezone.now()
    for minutes, compares in ((10, True), (4, False)):
        start(alice_client, device)
        newest = Run.objects.latest("pk")
        took = {"started_at": begun, "finished_at": begun + timedelta(minutes=minutes)}
        Run.objects.filter(pk=newest.pk).update(
            state=State.FINISHED, spec=newest.spec | {"compare_speed": compares}, **took
        )
    text = " ".join(alice_client.get("/commands/").content.decode().split())
    assert "Find the largest batch size, about 10 min</button>" in text
    assert "Limit only, about 4 min</button>" in text


def test_ranks_can_be_emulated_where_the_command_offers_it(device: Device, settings, alice_client: Client) -> None:
    file = settings.COMMANDS_FILE
    file.write_text(f'{file.read_text()}settings = ["emulate_ranks"]\n')
    start(alice_client, device, emulate_ranks="8")
    run = Run.objects.get()
    assert (run.spec["emulate_ranks"], run.spec["compare_speed"]) == (8, False)
    assert "emulated, 3 of 8 ranks" in alice_client.get(run.get_absolute_url()).content.decode()
    assert [each.rank for each in spec_to_start(run.spec).emulated_ranks] == [0, 1, 7]


def test_a_command_of_several_devices_offers_sets_of_one_host(device: Device, settings, alice_client: Client) -> None:
    file = settings.COMMANDS_FILE
    file.write_text(f"{file.read_text()}devices = 2\n")
    text = alice_client.get("/commands/").content.decode()
    assert "A run takes 2 devices of one host together" in text
    assert "No host has so many" in text
    for number in range(2):
        make_card(number)
    text = alice_client.get("/commands/").content.decode()
    assert re.findall(r"<option[^>]*>([^<]*)</option>", text)[:2] == [
        "2 × GPU of one host",
        "2 × NVIDIA A100-SXM4-80GB",
    ]
    response = alice_client.post("/commands/tagger/", {"tagger-device": "any cuda"})
    run = Run.objects.get()
    assert response.headers["Location"] == run.get_absolute_url()
    assert run.device_count == 2
    assert "2 × GPU of one host" in alice_client.get(run.get_absolute_url()).content.decode()
    Run.objects.filter(pk=run.pk).update(device_name="NVIDIA T4")
    assert "2 × T4" in alice_client.get("/commands/").content.decode()


def test_speeds_are_compared_unless_the_box_is_unticked(device: Device, alice_client: Client) -> None:
    box = re.search(r'<input[^>]*name="tagger-compare_speed"[^>]*>', alice_client.get("/commands/").content.decode())
    assert box is not None
    assert " checked" in box[0]
    start(alice_client, device, compare_speed="on")
    start(alice_client, device)  # a browser sends nothing of a box that is not ticked
    assert [run.spec["compare_speed"] for run in Run.objects.order_by("pk")] == [True, False]


def test_a_wrong_value_is_shown_at_its_field_and_nothing_is_stored(device: Device, alice_client: Client) -> None:
    response = start(alice_client, device, memory_limit_bytes="much")
    assert response.status_code == 422
    assert "is not a size" in response.content.decode()
    assert not Run.objects.exists()


def test_a_command_that_is_not_registered_is_not_found(device: Device, alice_client: Client) -> None:
    assert start(alice_client, device, name="rm").status_code == 404


def test_a_device_whose_worker_is_silent_is_not_offered_beside_one_that_lives(
    device: Device, alice_client: Client
) -> None:
    living = make_card()
    text = alice_client.get("/commands/").content.decode()
    assert f'<option value="{living.pk}">' in text
    assert f'<option value="{device.pk}">' not in text


def words(client: Client, address: str = "/commands/") -> str:
    text = client.get(address).content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def finished(device: Device, client: Client, **values: str) -> Run:
    start(client, device, **values)
    run = Run.objects.latest("pk")
    Run.objects.filter(pk=run.pk).update(
        state="finished",
        largest_batch_size=60,
        recommended_batch_size=56,
        current_waste_bytes=512 * 2**20,
        limit_bytes=2**30,
    )
    return run


def test_each_command_shows_its_earlier_runs_with_answer_and_waste(device: Device, alice_client: Client) -> None:
    assert "No runs yet." in words(alice_client)
    run = finished(device, alice_client)
    said = words(alice_client)
    assert f"{run.pk} ● finished" in said
    assert "Use 56 512.0 MiB 50.0 %" in said


def test_change_and_run_fills_the_form_with_the_settings_of_the_run(device: Device, alice_client: Client) -> None:
    run = finished(device, alice_client, memory_limit_bytes="768MiB", current_batch_size="7", whole_run="on")
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert f'href="/commands/?from={run.pk}#command-tagger"' in page
    text = alice_client.get(f"/commands/?from={run.pk}").content.decode()
    assert 'name="tagger-memory_limit_bytes" value="768MiB"' in text
    assert 'name="tagger-current_batch_size" value="7"' in text
    assert f'<option value="{device.pk}" selected>' in text
    assert re.search(r'<input[^>]*name="tagger-whole_run"[^>]* checked', text)
    assert not re.search(r'<input[^>]*name="tagger-compare_speed"[^>]* checked', text)


def test_the_settings_of_a_command_that_is_gone_fill_nothing_and_the_page_says_so(
    device: Device, settings, alice_client: Client
) -> None:
    run = finished(device, alice_client)
    settings.COMMANDS_FILE = None
    assert f"tagger is not registered on this host, so run {run.pk} cannot be changed here." in words(
        alice_client, f"/commands/?from={run.pk}"
    )


@pytest.mark.parametrize("query", ["from=x", "form=1"])
def test_a_wrong_address_is_said_and_the_page_is_shown(device: Device, alice_client: Client, query: str) -> None:
    answer = alice_client.get(f"/commands/?{query}")
    assert (answer.status_code, "Find the largest batch size" in answer.content.decode()) == (400, True)


def test_a_host_without_a_gpu_is_offered_the_limit_of_the_start_page(device: Device, alice_client: Client) -> None:
    assert 'name="tagger-memory_limit_bytes" value="512MiB"' in alice_client.get("/commands/").content.decode()
    make_card()
    assert 'value="512MiB"' not in alice_client.get("/commands/").content.decode()


def test_any_script_can_be_run_with_the_command_to_copy(settings, alice_client: Client) -> None:
    settings.COMMANDS_FILE = None
    text = alice_client.get("/commands/").content.decode()
    command = "memorymark tune --report-to http://testserver/ -- python train.py --batch-size {batch_size}"
    assert command in text
    assert 'action="/account/tokens/report/"' in text
    assert "manage.py command add" in text


def test_a_chosen_command_stands_first(device: Device, settings, alice_client: Client) -> None:
    other = '[[command]]\nname = "parser"\ncommand = ["python", "parse.py", "{batch_size}"]\n'
    settings.COMMANDS_FILE.write_text(settings.COMMANDS_FILE.read_text() + other)
    names = re.findall(r'<h2 id="command-([a-z]+)"', alice_client.get("/commands/?command=parser").content.decode())
    assert names == ["parser", "tagger"]


def test_the_page_reads_no_result(device: Device, alice_client: Client) -> None:
    finished(device, alice_client)
    with CaptureQueriesContext(connection) as queries:
        alice_client.get("/commands/")
    assert all('"analysis_run"."result"' not in query["sql"] for query in queries)


def test_a_file_that_was_broken_meanwhile_breaks_no_page(device: Device, settings, alice_client: Client) -> None:
    settings.COMMANDS_FILE.write_text("[[command")
    assert "Any script, on any machine" in words(alice_client)


def test_the_start_page_lists_the_commands_and_leads_to_their_filled_forms(
    device: Device, alice_client: Client
) -> None:
    def start_page() -> str:
        return alice_client.get("/", headers={"accept": "text/html"}).content.decode()

    assert 'href="/commands/?command=tagger#command-tagger">Find the largest batch size' in start_page()
    run = finished(device, alice_client)
    assert f'href="/commands/?from={run.pk}#command-tagger">Find the largest batch size' in start_page()
    assert "Use 56 · 50.0 % unused today" in " ".join(start_page().split())


def test_the_start_page_has_the_command_for_any_script_where_none_is_registered(settings, alice_client: Client) -> None:
    settings.COMMANDS_FILE = None
    text = alice_client.get("/", headers={"accept": "text/html"}).content.decode()
    assert "memorymark tune --report-to http://testserver/ -- python train.py" in text
    assert 'action="/account/tokens/report/"' in text
    assert text.index("Your own script") < text.index("A model of the catalogue")


@pytest.mark.parametrize(
    ("columns", "answer"),
    [
        ({"recommended_batch_size": None, "certified": True}, "Up to 60"),
        ({"recommended_batch_size": None, "certified": False}, "At least 60"),
        ({"recommended_batch_size": None, "largest_batch_size": 0, "boundary_reason": "does_not_fit"}, "Does not fit"),
    ],
)
def test_an_answer_claims_no_more_than_was_measured(
    device: Device, alice_client: Client, columns: dict[str, object], answer: str
) -> None:
    run = finished(device, alice_client)
    Run.objects.filter(pk=run.pk).update(**columns)
    assert f"16 {answer} 512.0 MiB" in words(alice_client)


def test_a_command_that_ran_is_offered_with_the_limit_of_its_last_run(device: Device, alice_client: Client) -> None:
    finished(device, alice_client, memory_limit_bytes="256MiB")
    assert 'name="tagger-memory_limit_bytes" value="256MiB"' in alice_client.get("/commands/").content.decode()
