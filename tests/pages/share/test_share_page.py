"""A share link shows one result to everybody, and nothing that was written or measured about people and machines."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from analysis.models import AuditEntry, Device, RetentionRule, Run, ShareLink
from analysis.permissions import MANAGER
from analysis.runs import services
from analysis.runs.marks.share_links import share_link_create
from memorymark_site.env import Rate
from tests.factories import make_device, make_measured_run, make_probe, make_refusal, make_user
from tests.factories.estimates import make_stored_estimate
from tests.factories.reports import make_reported_run

pytestmark = pytest.mark.django_db

SECRETS = (
    *("alice", "secret-name", "secret-note", "secret-tag", "secret-host", "GPU-5ec2e7", "/home/secret", "secret-job"),
    *("secret-process", "secret-session", "secret-command", "secret-file", "cuda:7"),
)
COMMAND = {
    "command": ["/home/secret/secret-command.py", "--batch-size", "{batch_size}"],
    "name": "secret-command",
    "batch_in": "secret-file.yaml:train",
}
TRAINING = {
    **{"micro_batches": 1, "ranks": 1, "rank_peaks_bytes": [], "tokens_per_step": 8, "waiting_for_data_fraction": 0.1},
    **{"starts": [[4, 2.0]], "changed_files": ["/home/secret/secret-file"], "rank_hosts": ["secret-host"]},
}


def seeded(owner: User, **result: Any) -> Run:
    """A finished run with a marker in everything that is somebody's."""
    run = make_measured_run(Device.objects.first() or make_device("secret-host", uuid="GPU-5ec2e7"))
    document = {**run.result, **result}
    document["device"] |= {
        **{"device": "cuda:7", "uuid": "GPU-5ec2e7", "foreign_used_bytes": 2**30},
        "foreign_processes": [{"pid": 4711, "name": "secret-process", "user": "alice"}],
    }
    document["environment"] |= {"host": "secret-host", "slurm_job_name": "secret-job", "folder": "/home/secret"}
    document["boundary"] |= {"refusal": "out of memory in /home/secret/train.py"}
    probes = [make_probe(4), make_probe(8), make_refusal(9, error_message="in /home/secret/train.py")]
    document["probes"] = [probe.to_dict() | {"timing_conditions": {"by": "secret-session"}} for probe in probes]
    Run.objects.filter(pk=run.pk).update(
        result=document, requested_by=owner, owner="secret-host:1", error_message="/home/secret"
    )
    services.run_annotate(run_id=run.pk, by=owner, name="secret-name", note="secret-note", tags=["secret-tag"])
    return Run.objects.get(pk=run.pk)


def shared(run: Run, by: User, days: int | None = 30) -> tuple[ShareLink, str]:
    link, secret = share_link_create(run_id=run.pk, by=by, days=days)
    return link, f"/share/{secret}/"


def read_all(client: Client, address: str) -> dict[str, str]:
    html = client.get(address, headers={"accept": "text/html"}).content.decode()
    charts = re.findall(r'href="(/share/[^"]+\.svg)"', html)
    paths = [f"{address.rstrip('/')}.svg", *charts]
    return {address: html} | {path: client.get(path).content.decode() for path in paths}


def found_secrets(contents: dict[str, str]) -> list[tuple[str, str]]:
    return [(path, secret) for path, text in contents.items() for secret in SECRETS if secret in text]


def test_a_result_is_shown_without_a_login_with_its_charts_and_tables(alice):
    _, address = shared(seeded(alice), alice)
    contents = read_all(Client(), address)
    assert len([path for path in contents if "/charts/" in path]) == 2
    assert "trains with up to 8 samples" in contents[address]
    assert "The same as a table" in contents[address]
    assert "peak memory" in " ".join(contents.values()).lower()


def test_nothing_of_people_or_machines_is_in_any_byte_that_can_be_reached(alice):
    _, address = shared(seeded(alice), alice)
    assert found_secrets(read_all(Client(), address)) == []


def test_of_a_training_of_somebodys_own_neither_command_nor_name_nor_files_are_shown(alice):
    spec = {**COMMAND, "batch": "template", "max_batch_size": 64, "current_batch_size": 4, "time_budget_seconds": 60}
    run = seeded(alice, training=TRAINING, spec={"model": "secret-command", **spec})
    Run.objects.filter(pk=run.pk).update(kind="command", model="secret-command", spec=spec)
    contents = read_all(Client(), shared(run, alice)[1])
    assert found_secrets(contents) == []
    assert "a training of their own" in " ".join(contents.values())


def test_of_an_estimate_nothing_of_people_or_other_runs_is_shown(alice):
    run = make_stored_estimate()
    Run.objects.filter(pk=run.pk).update(requested_by=alice, name="secret-name", owner="secret-host:1")
    _, address = shared(run, alice)
    contents = read_all(Client(), address)
    assert found_secrets(contents) == []
    assert "every figure here is predicted" in contents[address]
    assert "/runs/" not in contents[address]


def test_a_reported_run_says_that_the_lab_has_not_verified_it_until_it_is_trusted(alice, root):
    run = make_reported_run(alice, host="secret-host")
    _, address = shared(run, alice)
    contents = read_all(Client(), address)
    badge_path = f"{address.rstrip('/')}.svg"
    assert "Reported, not trusted by this lab" in contents[address]
    assert "reported, not trusted by this lab" in contents[badge_path]
    assert found_secrets(contents) == []
    assert [path for path, text in contents.items() if run.report.token.prefix in text or "Trust it" in text] == []
    services.trust_give(by=root, host="secret-host")
    assert "not trusted" not in " ".join(read_all(Client(), address).values())


def test_it_leads_nowhere_inside(alice):
    _, address = shared(seeded(alice), alice)
    html = read_all(Client(), address)[address]
    assert {
        path for path in re.findall(r'(?:href|action)="(/[^"]*)"', html) if not path.startswith(("/static/", "/share/"))
    } == set()


def test_people_who_are_signed_in_see_the_same_bytes_as_everybody(alice, alice_client):
    _, address = shared(seeded(alice), alice)
    ended = f"/share/{'x' * 43}/"
    for path in (address, ended):
        answers = [client.get(path, headers={"accept": "text/html"}) for client in (Client(), alice_client)]
        assert answers[0].content == answers[1].content


def test_robots_other_sites_and_shared_caches_are_excluded(alice):
    _, address = shared(seeded(alice), alice)
    for path in (address, f"{address.rstrip('/')}.svg", f"{address}charts/memory.svg", "/share/unknown/"):
        headers = Client().get(path).headers
        assert "noindex" in headers["X-Robots-Tag"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "private, no-store"


def test_the_badge_alone_may_be_shown_by_other_sites(alice):
    _, address = shared(seeded(alice), alice)
    badge = Client().get(f"{address.rstrip('/')}.svg")
    assert badge.headers["Content-Type"] == "image/svg+xml"
    assert badge.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert Client().get(address).headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_ended_withdrawn_unknown_links_and_those_of_deleted_runs_answer_the_same(alice, alice_client):
    run = seeded(alice)
    (ended, first), (withdrawn, second) = shared(run, alice), shared(run, alice)
    ShareLink.objects.filter(pk=ended.pk).update(ends_at=timezone.now() - timedelta(seconds=1))
    assert alice_client.post(f"/share-links/{withdrawn.pk}/withdraw/").status_code == 302
    other = seeded(alice)
    _, third = shared(other, alice)
    services.runs_delete(run_ids={other.pk}, by=alice)
    addresses = (first, second, third, f"/share/{'x' * 43}/")
    for rest in ("", "charts/memory.svg"):
        answers = [Client().get(f"{address}{rest}", headers={"accept": "text/html"}) for address in addresses]
        assert {answer.status_code for answer in answers} == {404}
        assert len({answer.content for answer in answers}) == 1
    assert Client().get(f"{first.rstrip('/')}.svg").status_code == 404


def test_too_many_requests_of_one_address_wait(alice, settings):
    settings.THROTTLES = {**settings.THROTTLES, "share": Rate(2, 60.0)}
    answers = [Client().get("/share/unknown/").status_code for _ in range(3)]
    assert answers == [404, 404, 429]


def test_the_secret_is_stored_nowhere(alice):
    link, address = shared(seeded(alice), alice)
    secret = address.split("/")[2]
    rows = [str(row) for model in (ShareLink, AuditEntry, Run) for row in model._base_manager.values_list()]
    assert not [row for row in rows if secret in row]
    assert secret.startswith(link.prefix)


def test_the_page_of_the_run_creates_a_link_once_and_withdraws_it(alice, alice_client):
    run = seeded(alice)
    html = alice_client.post(f"/runs/{run.pk}/share/", {"days": "7"}).content.decode()
    address = re.search(r"http://testserver(/share/[\w-]+/)", html)[1]
    assert "[![MemoryMark: bert-tiny · CPU" in html
    assert Client().get(address).status_code == 200
    page = alice_client.get(run.get_absolute_url()).content.decode()
    assert address not in page
    assert "Withdraw" in page
    alice_client.post(f"/share-links/{ShareLink.objects.get().pk}/withdraw/")
    assert Client().get(address).status_code == 404
    assert list(
        AuditEntry.objects.filter(action__startswith="share.").order_by("pk").values_list("action", flat=True)
    ) == [
        "share.create",
        "share.withdraw",
    ]


def test_only_people_who_may_change_a_run_share_it_or_withdraw_its_links(alice):
    run, other = seeded(alice), make_user("olga")
    link, address = shared(run, alice)
    client = Client()
    client.force_login(other)
    client.post(f"/runs/{run.pk}/share/", {"days": "7"})
    client.post(f"/share-links/{link.pk}/withdraw/")
    assert ShareLink.objects.live().count() == 1
    assert "Create link" not in client.get(run.get_absolute_url()).content.decode()
    client.force_login(make_user("boss", MANAGER))
    client.post(f"/share-links/{link.pk}/withdraw/")
    assert Client().get(address).status_code == 404


@pytest.mark.parametrize(
    ("most", "offered"), [(90, ["1", "7", "30", "90"]), (3, ["1"]), (None, ["1", "7", "30", "90", "365", ""])]
)
def test_the_manager_sets_how_long_a_link_is_valid_at_most(alice, alice_client, most, offered):
    RetentionRule.objects.filter(what=RetentionRule.What.SHARE_LINKS).update(days=most)
    run = seeded(alice)
    html = alice_client.get(run.get_absolute_url()).content.decode()
    choices = re.search(r'<select name="days".*?</select>', html, re.DOTALL)[0]
    assert re.findall(r'value="(\d*)"', choices) == offered
    alice_client.post(f"/runs/{run.pk}/share/", {"days": ""})
    assert ShareLink.objects.count() == (1 if most is None else 0)
