"""Home, login and the frame of every page: what they show, what they refuse, how often they ask the database."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from analysis.models import Device, Run
from analysis.pages.frame import _BELOW, _SECTIONS
from analysis.templatetags.units import trend_address
from engine import __version__
from engine.text.units import GIB
from tests.factories import make_claimed_run, make_device, make_estimate, make_measured_run, make_run
from tests.factories.pages import form_data

pytestmark = pytest.mark.django_db


def page(client: Client, address: str) -> str:
    response = client.get(address, headers={"accept": "text/html"})
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_home_says_that_a_cpu_rehearses_a_card(alice_client: Client) -> None:
    make_device()
    assert "This host has no GPU, so runs use the CPU" in page(alice_client, "/")
    make_device(device="cuda:0", kind="cuda")
    assert "This host has no GPU, so runs use the CPU" not in page(alice_client, "/")


def test_home_without_a_device_says_how_to_get_one(alice_client: Client) -> None:
    text = page(alice_client, "/")
    assert "python manage.py up" in text
    assert "measurements are not possible yet" in text
    assert re.search(r'value="estimate"[^>]* checked', text)


def test_analyzing_stores_a_run_and_shows_it(alice_client: Client) -> None:
    response = alice_client.post("/runs/new/", form_data(make_device(), memory_limit_bytes="512MiB"))
    run = Run.objects.get()
    assert response.url == run.get_absolute_url()
    assert (run.model, run.state, run.requested_by.get_username()) == ("bert-tiny", "queued", "alice")


def test_a_wrong_field_stores_nothing_and_is_marked(alice_client: Client) -> None:
    response = alice_client.post("/runs/new/", form_data(make_device(), sequence_length="9999"))
    text = response.content.decode()
    assert response.status_code == 422
    assert not Run.objects.exists()
    assert re.search(r'id="id_sequence_length_error"[^>]*><li>bert-tiny takes 1 to 512', text)
    assert 'value="9999"' in text


def test_a_disabled_device_is_not_offered(alice_client: Client) -> None:
    device = make_device(enabled=False)
    assert alice_client.post("/runs/new/", form_data(device)).status_code == 422
    assert not Run.objects.exists()


def test_a_source_that_is_gone_gives_the_plain_form(alice_client: Client) -> None:
    make_device()
    assert '<option value="bert-tiny" selected>' in page(alice_client, "/?from=999")


@pytest.mark.parametrize(
    "query", ["from=x", "from=-1", f"clone={'9' * 40}", "from=²", "modle=bert", "model=bert&model=gpt2"]
)
def test_an_address_that_fills_in_nonsense_gives_the_plain_form_and_says_so(alice_client: Client, query: str) -> None:
    make_device()
    response = alice_client.get(f"/?{query}", headers={"Accept": "text/html"})
    text = response.content.decode()
    assert (response.status_code, '<option value="bert-tiny" selected>' in text) == (400, True)
    assert f"{query.partition('=')[0]}: " in text


def test_a_fresh_memory_reading_is_live_and_an_old_one_is_grey(alice_client: Client) -> None:
    device = make_device(memory_used_bytes=2 * GIB, memory_read_at=timezone.now())
    assert "is-stale" not in page(alice_client, "/devices/")
    Device.objects.filter(pk=device.pk).update(memory_read_at=timezone.now() - timedelta(minutes=6))
    text = page(alice_client, "/devices/")
    assert 'class="is-stale"' in text
    assert "last read" in text
    assert "6 min ago" in text


def test_memory_that_was_never_read_is_not_zero(alice_client: Client) -> None:
    make_device()
    text = page(alice_client, "/devices/")
    assert "not measured" in text
    assert "<meter" not in text


def test_a_busy_device_links_to_its_run(alice_client: Client) -> None:
    run = make_claimed_run()
    make_run(run.device)
    text = page(alice_client, "/devices/")
    assert f'href="/runs/{run.pk}/"' in text
    assert f"run {run.pk}, 1 waiting" in text


def test_the_login_page_logs_in(client: Client, alice: object) -> None:
    assert 'name="password"' in page(client, "/login/")
    response = client.post("/login/", {"username": "alice", "password": "alice's password"})
    assert response.url == "/"


def test_a_wrong_password_is_said(client: Client, alice: object) -> None:
    response = client.post("/login/", {"username": "alice", "password": "no"})
    assert "Name or password is wrong" in response.content.decode()


READERS = ["Start", "Your scripts", "Runs", "Estimates", "Matrix", "Fleet"]


def menu(client: Client, address: str) -> list[str]:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    found = re.search(r'<nav class="menu"[^>]*>(.*?)</nav>', text, re.DOTALL)
    assert found is not None
    return re.findall(r">([^<]+)</a>", found[1])


def current(client: Client, address: str) -> str:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    return " ".join(re.findall(r'aria-current="(?:page|true)">([^<]+)</a>', text))


def test_the_panel_has_the_menu_of_the_pages(root_client: Client) -> None:
    assert menu(root_client, "/") == menu(root_client, "/admin/") == [*READERS, "Admin", "Help"]


def test_the_panel_is_offered_to_managers_alone(alice_client: Client) -> None:
    assert menu(alice_client, "/") == [*READERS, "Help"]


def test_a_guest_is_offered_what_is_open(settings) -> None:
    settings.PUBLIC_READ_ONLY = True
    assert menu(Client(), "/matrix/") == ["Start", "Estimates", "Matrix"]


def test_the_entry_of_a_page_and_of_what_is_below_it_is_current(root_client: Client) -> None:
    run = make_measured_run(make_device())
    shown = {"/": "Start", "/runs/": "Runs", run.get_absolute_url(): "Runs", "/admin/queue/": "Admin"}
    shown |= {"/commands/": "Your scripts", "/compare/": "Runs", "/trend/": "Runs", "/validations/": "Runs"}
    shown |= {"/help/": "Help", "/help/glossary/": "Help"}
    assert {address: current(root_client, address) for address in shown} == shown


def test_a_form_with_errors_leaves_the_menu_at_start(root_client: Client) -> None:
    text = root_client.post("/runs/new/", {"model": "bert"}).content.decode()
    assert re.findall(r'aria-current="(?:page|true)">([^<]+)</a>', text) == ["Start"]


def test_compare_and_trend_are_reached_from_the_runs(alice_client: Client) -> None:
    text = alice_client.get("/runs/").content.decode()
    assert [place for place in ("/compare/", "/trend/") if f'href="{place}"' not in text] == []


def test_validations_are_reached_from_help_and_not_promoted_at_the_start(alice_client: Client) -> None:
    assert 'href="/validations/"' in alice_client.get("/help/").content.decode()
    assert 'href="/validations/"' not in alice_client.get("/", headers={"accept": "text/html"}).content.decode()


@pytest.mark.parametrize("address", ["/", "/admin/"])
def test_the_footer_names_the_version_and_leads_to_help_and_api(root_client: Client, address: str) -> None:
    text = root_client.get(address, headers={"accept": "text/html"}).content.decode()
    foot = text.split("<footer", 1)[1]
    assert f"MemoryMark {__version__}" in foot
    assert [place for place in ("/help/", "/help/#documents", "/api/docs/") if f'href="{place}"' not in foot] == []


@pytest.mark.parametrize("address", ["/devices/", "/fleet/now/"])
def test_a_part_of_a_page_is_a_page_where_it_is_opened_by_itself(alice_client: Client, address: str) -> None:
    assert "<h1" in alice_client.get(address).content.decode()
    assert "<h1" not in alice_client.get(address, headers={"HX-Request": "true"}).content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("is_allowed", [True, False])
def test_who_may_ask_for_estimates_without_a_login_finds_them_on_the_login_page(client, settings, is_allowed) -> None:
    settings.GUEST_ESTIMATES = is_allowed
    assert ('href="/estimates/"' in client.get("/login/").content.decode()) is is_allowed


def way(client: Client, address: str) -> list[tuple[str, str]]:
    text = client.get(address, headers={"accept": "text/html"}).content.decode()
    found = re.search(r'<nav class="crumbs[^>]*aria-label="Breadcrumb">(.*?)</nav>', text, re.DOTALL)
    steps = re.findall(
        r'<a href="([^"]*)">([^<]*)</a>|<span aria-current="(page)">([^<]*)</span>', found[1] if found else ""
    )
    return [(title or here, address or mark) for address, title, mark, here in steps]


def test_a_page_below_a_section_says_where_it_stands(alice_client: Client) -> None:
    run = make_measured_run(make_device())
    above = [("Runs", "/runs/"), (f"Run {run.pk}", f"/runs/{run.pk}/")]
    assert way(alice_client, run.get_absolute_url()) == [above[0], (f"Run {run.pk}", "page")]
    assert way(alice_client, f"{run.get_absolute_url()}advice/") == [*above, ("What to paste", "page")]
    assert way(alice_client, trend_address(run)) == [("Trend", "/trend/"), ("BERT tiny on Test CPU", "page")]
    assert way(alice_client, "/compare/") == [("Runs", "/runs/"), ("Compare", "page")]
    assert way(alice_client, "/validations/") == [("Runs", "/runs/"), ("Validations", "page")]
    assert way(alice_client, "/account/notifications/") == [("Account", "/account/"), ("Notifications", "page")]
    assert [title for title, _ in way(alice_client, "/help/glossary/")][0] == "Help"


def test_an_estimate_stands_among_the_estimates(alice_client: Client) -> None:
    run = make_estimate()
    assert way(alice_client, run.get_absolute_url()) == [("Estimates", "/estimates/"), (f"Estimate {run.pk}", "page")]
    text = alice_client.get(run.get_absolute_url()).content.decode()
    assert re.findall(r'aria-current="true">(\w+)', text) == ["Estimates"]


@pytest.mark.parametrize("address", ["/", "/runs/", "/trend/", "/fleet/", "/account/", "/help/"])
def test_a_section_itself_needs_no_way_to_it(alice_client: Client, address: str) -> None:
    assert way(alice_client, address) == []


def test_a_guest_is_led_to_no_page_that_is_closed_to_guests(settings) -> None:
    settings.PUBLIC_READ_ONLY = True
    run = make_measured_run(make_device())
    assert way(Client(), run.get_absolute_url()) == []


def test_every_page_that_has_a_way_exists() -> None:
    for name in (*_SECTIONS, *_BELOW):
        values = {"analysis:document": ["glossary"], "analysis:run": [1], "analysis:advice": [1], "subscription": [1]}
        assert reverse(name, args=values.get(name, []))
