"""A stored result that cannot be read, or a part of it, is said so on its page, and is no error of the server."""

import pytest
from django.test import Client

from analysis.models import Run
from analysis.runs.marks.share_links import share_link_create
from tests.factories.estimates import make_stored_estimate
from tests.factories.reports import make_reported_run


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("memory_breakdown", {"entries": "KIND"}),
        ("estimate", {"spec": "x"}),
        ("estimate", {"spec": 0.5, "gpu": "a10"}),
        ("estimate", "text"),
    ],
)
@pytest.mark.django_db
def test_a_part_that_cannot_be_read_is_named_on_the_page_and_left_out(alice, alice_client, part, value):
    run = make_reported_run(alice)
    Run.objects.filter(pk=run.pk).update(result={**run.result, part: value})
    page = alice_client.get(f"/runs/{run.pk}/").content.decode()
    assert f"cannot be read, and is left out: {part.replace('_', ' ')}" in page
    _, secret = share_link_create(run_id=run.pk, by=alice, days=7)
    assert Client().get(f"/share/{secret}/").status_code == 200


@pytest.mark.django_db
def test_a_result_that_cannot_be_read_has_a_page_that_says_so(alice, alice_client):
    run = make_reported_run(alice)
    _, secret = share_link_create(run_id=run.pk, by=alice, days=7)
    for result in ({**run.result, "boundary": "x"}, {"probes": 7}, {**run.result, "spec": {}}):
        Run.objects.filter(pk=run.pk).update(result=result)
        page = alice_client.get(f"/runs/{run.pk}/")
        assert (page.status_code, "cannot be read" in page.content.decode()) == (200, True)
        assert alice_client.get(f"/compare/?ids={run.pk}").status_code == 200
        assert alice_client.get(f"/runs/{run.pk}/charts/memory.svg").status_code == 404
        assert Client().get(f"/share/{secret}/").status_code == 404


@pytest.mark.django_db
def test_an_estimate_that_cannot_be_read_ends_neither_its_page_nor_a_comparison(alice_client):
    run, other = make_stored_estimate(), make_stored_estimate("t4")
    Run.objects.filter(pk=run.pk).update(result={"estimates": [{"spec": {}}]})
    for path in (f"/runs/{run.pk}/", f"/compare/?ids={run.pk},{other.pk}"):
        page = alice_client.get(path)
        assert (page.status_code, "cannot be read" in page.content.decode()) == (200, True), path
