"""What is known of the speed of a result is said in the same words wherever it is said."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.models import Run
from analysis.presentation.badge import badge
from analysis.presentation.kinds import presentation_of
from analysis.runs.marks.share_links import share_link_create
from engine.cli.printing.result_text import answer_lines, summary
from engine.describe.speed import speed_of, stated_reason
from engine.facts.result import RunResult
from engine.facts.speed_rounds import SpeedClaim
from tests.engine.fake_racer import FAST
from tests.factories.pages import finished, page, words
from tests.factories.speeds import (
    make_ahead_result,
    make_bound_result,
    make_kept_result,
    make_timed_result,
    make_unmeasurable_result,
    undisturbed,
)
from tests.pages.compare.test_compare_races import race

SORTS: dict[str, tuple[Callable[[], RunResult], str, str]] = {
    "figure": (make_timed_result, "1.39x as fast as your 4 (1.36 to 1.42x)", "1.39x"),
    "at least": (make_bound_result, "at least 2x as fast as your 4", "at least 2x"),
    "ahead": (make_ahead_result, "faster than your 4 in 10 of 10 rounds", "faster"),
    "no gain": (make_kept_result, "8 is 0.80 to 1.02x as fast as your 4", "no gain"),
    "disturbed": (make_unmeasurable_result, "other programs used 1.6 of 2 cores", "not known"),
    "open": (lambda: undisturbed(make_unmeasurable_result()), "8 is 0.80 to 13.00x as fast as your 4", "not known"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("sort", SORTS)
def test_every_place_says_the_same_of_a_speed(sort: str, alice_client: Client, client: Client, alice: User) -> None:
    make, said, factor = SORTS[sort]
    result = make()
    assert result.speed is not None
    is_figure = speed_of(result).claim is SpeedClaim.FIGURE
    result = replace(result, speed=replace(result.speed, reason=None if is_figure else stated_reason(result)))
    run = finished(result)
    Run.objects.update(requested_by=alice)
    run.refresh_from_db()
    _, secret = share_link_create(run_id=run.pk, by=alice, days=7)
    stored = alice_client.get(f"/api/v1/runs/{run.pk}/").json()["result"]
    places = {
        "command line": answer_lines(result)[0],
        "page": words(page(alice_client, run)),
        "shared page": words(client.get(f"/share/{secret}/").content.decode()),
        "message": presentation_of(run).answer(run),
        "API": stored["speed"]["reason"] or said,
    }
    assert [place for place, text in places.items() if said not in text] == []
    assert stored["speed"]["reason"] == (None if is_figure else said)
    assert ("x as fast" in str(stored["speed"]["reason"])) is (sort in ("at least", "no gain", "open"))
    assert (f" · use 8: {factor}" in badge(run).text) is speed_of(result).is_gain
    in_block = {"figure": "1.4x", "no gain": "1.0x"}.get(sort, factor)
    assert f"Speedup: {in_block}\n" in summary(result)


@pytest.mark.parametrize("sort", SORTS)
def test_a_stated_reason_is_read_back_as_it_was_said(sort: str) -> None:
    result = SORTS[sort][0]()
    assert result.speed is not None
    again = replace(result, speed=replace(result.speed, reason=stated_reason(result)))
    assert speed_of(again) == speed_of(result)


RACES: dict[str, tuple[dict[str, Any], str]] = {
    "figure": ({"factors": FAST, "step_seconds": lambda size: 0.025 * size}, "x ["),
    "ahead": ({"factors": {"fused": 12.0}, "others_cores": 0.9}, "Faster in "),
    "no gain": ({"step_seconds": lambda size: 0.1 * size}, "No change that was tried"),
    "disturbed": ({"factors": FAST, "others_cores": 0.9}, "Nothing is claimed: other programs ran in all"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("sort", RACES)
def test_every_place_says_the_same_of_a_race(sort: str, alice_client: Client) -> None:
    changed, begins = RACES[sort]
    run = race(**changed)
    found = presentation_of(run).race(run)
    assert begins in found.headline
    stored = alice_client.get(f"/api/v1/runs/{run.pk}/").json()["result"]
    places = {
        "page": words(page(alice_client, run)),
        "message": presentation_of(run).answer(run),
        "API": stored["headline"],
    }
    assert [place for place, text in places.items() if found.headline not in text] == []
    assert found.factor.lower() in found.headline.lower()
    assert bool(found.factor) is (sort in ("figure", "ahead"))
