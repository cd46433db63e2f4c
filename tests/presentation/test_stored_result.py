"""Stored results are read whatever version wrote them, and what is no result is refused by its member."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from analysis.models import Run
from analysis.runs.marks.share_links import share_link_create
from engine.documents.measured import Measured
from engine.results.result import Probe
from tests.factories import make_result
from tests.factories.reports import make_reported_run


def stored() -> dict[str, Any]:
    return dict(json.loads(json.dumps(make_result().to_dict())))


def test_a_result_is_read_back_as_it_was() -> None:
    read, made = Measured.from_dict(stored()), make_result()
    assert (read.device, read.boundary, read.probes) == (made.device, made.boundary, made.probes)
    assert (read.recommended, read.waste, read.savings) == (made.recommended, made.waste, made.savings)


def test_a_result_of_a_later_version_is_read_without_what_this_one_does_not_know() -> None:
    data = stored()
    for part in (data, data["device"], data["boundary"], data["probes"][0]):
        part["colour"] = "red"
    assert Measured.from_dict(data) == Measured.from_dict(stored())


def test_a_result_of_before_0_5_has_no_interval() -> None:
    data = {name: value for name, value in stored().items() if name not in ("speed", "speedup_low", "speedup_high")}
    assert (Measured.from_dict(data).speed, Measured.from_dict(data).speedup_low) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"batch_size": "8"}, "Expected `int`, got `str` - at `$.batch_size`"),
        ({"batch_size": True}, "Expected `int`, got `bool` - at `$.batch_size`"),
        ({"outcome": "fine"}, "Invalid enum value 'fine' - at `$.outcome`"),
        ({"timed_step_seconds": [None]}, r"Expected `float`, got `null` - at `$.timed_step_seconds\[0\]`"),
        ({"memory_by_kind": {}}, "Object missing required field `parameters_bytes` - at `$.memory_by_kind`"),
    ],
)
def test_what_is_of_another_type_is_refused_by_its_member(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("$", r"\$")):
        Probe.from_dict({**stored()["probes"][0], **wrong})


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
