"""Runs beside each other, the matrix and trends through the API: the same figures as on the pages, in base units."""

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from analysis.models import AuditEntry, Run
from engine.text.units import GIB
from tests.factories import make_run, make_user
from tests.factories.matrix import estimated, measured
from tests.factories.results import CARD, finished, finished_estimate, finished_on_day, result

pytestmark = pytest.mark.django_db
COMPARE, MATRIX, TREND = "/api/v1/compare/", "/api/v1/matrix/", "/api/v1/trends/"
NOTES = "/api/v1/trends/acknowledgements/"


def compare(client: Client, *runs: Run, **body: Any) -> dict[str, Any]:
    response = client.post(COMPARE, {"ids": [run.pk for run in runs], **body}, content_type="application/json")
    assert response.status_code == 200, response.content
    return dict(response.json())


def named(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)


def test_every_figure_stands_against_the_baseline(alice_client: Client) -> None:
    first, second = finished(result(20)), finished(result(25, bytes_per_sample=GIB // 2))
    answer = compare(alice_client, first, second)
    assert (answer["baseline"], answer["common_batch_size"]) == (first.pk, 16)
    cells = named(answer["figures"], "largest_batch_size")["cells"]
    exact = {"low": None, "high": None, "is_lower_bound": False, "difference_is_bound": False}
    assert cells[0] == {"value": 20.0, **exact, "difference": None, "difference_fraction": None, "verdict": ""}
    assert cells[1] == {"value": 25.0, **exact, "difference": 5.0, "difference_fraction": 0.25, "verdict": "better"}
    assert [cell["value"] for cell in named(answer["figures"], "common_peak_bytes")["cells"]] == [16.0 * GIB, 8.0 * GIB]


def test_the_baseline_can_be_another_run(alice_client: Client) -> None:
    first, second = finished(result(20)), finished(result(25))
    answer = compare(alice_client, first, second, baseline=second.pk)
    cell = named(answer["figures"], "largest_batch_size")["cells"][0]
    assert (answer["baseline"], cell["difference"], cell["verdict"]) == (second.pk, -5.0, "worse")


def test_settings_are_told_raw_and_those_that_differ_are_marked(alice_client: Client) -> None:
    answer = compare(alice_client, finished(), finished(precision="bf16", sequence_length=64))
    told = {row["name"]: (row["differs"], row["values"]) for row in answer["settings"]}
    assert told["precision"] == (True, ["fp32", "bf16"])
    assert told["sequence_length"] == (True, [128, 64])
    assert told["optimizer"] == (False, ["adamw", "adamw"])


def test_other_software_is_a_mismatch(alice_client: Client) -> None:
    answer = compare(alice_client, finished(), finished(result(environment={"torch": "2.14.0"})))
    assert answer["mismatches"] == ["torch"]
    row = named(answer["environment"], "torch")
    assert (row["values"], row["may_move_figures"]) == (["2.13.0", "2.14.0"], True)
    assert named(answer["environment"], "capacity_bytes")["values"] == [CARD.capacity_bytes] * 2


def test_an_estimate_has_no_speed_and_a_waiting_run_no_figure(alice_client: Client) -> None:
    measured_run, waiting = finished(), make_run()
    answer = compare(alice_client, measured_run, finished_estimate(), waiting)
    assert [run["has_figures"] for run in answer["runs"]] == [True, True, False]
    largest, speed = (
        named(answer["figures"], f"{name}")["cells"] for name in ("largest_batch_size", "fastest_samples_per_second")
    )
    assert [cell["value"] for cell in largest] == [8.0, 9.0, None]
    assert (largest[1]["verdict"], speed[1]["value"]) == ("", None)
    assert answer["mismatches"] == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/ids"),
        ({"ids": [1, 4711]}, "/ids"),
        ({"ids": ["x", 2]}, "/ids/0"),
        ({"ids": [1, 2], "baseline": 3}, "/baseline"),
        ({"ids": [1, 2], "colour": 3}, "/colour"),
        ([1, 2], ""),
    ],
)
def test_what_cannot_be_compared_is_refused_by_its_place(alice_client: Client, body: Any, pointer: str) -> None:
    answer = alice_client.post(COMPARE, body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)


def test_the_matrix_tells_each_cell_with_the_run_that_proves_it(alice_client: Client) -> None:
    run = measured("a100-40gb", largest=20)
    estimate = estimated("a10")
    answer = alice_client.get(MATRIX).json()
    [row] = answer["rows"]
    cells = {cell["card"]: cell for cell in row["cells"] if cell["kind"]}
    assert (row["model"], row["input_size"], set(cells)) == ("bert-tiny", 128, {"a100-40gb", "a10"})
    proven, predicted = cells["a100-40gb"], cells["a10"]
    assert (proven["kind"], proven["run"], proven["largest_batch_size"]) == ("measured", run.pk, 20)
    assert (predicted["kind"], predicted["run"], predicted["safe_batch_size"]) == ("estimated", estimate.pk, 48)
    assert predicted["samples_per_second"] is None


def test_the_matrix_has_the_filters_of_the_page(alice_client: Client) -> None:
    measured("a100-40gb", precision="bf16")
    assert alice_client.get(MATRIX).json()["rows"] == []
    answer = alice_client.get(MATRIX, {"precision": "bf16", "pretrained": "false"}).json()
    assert (len(answer["rows"]), answer["settings"]["precision"]) == (1, "bf16")


def grown() -> list[Run]:
    """Four runs, then four with a new torch that take 10 % more memory."""
    before, after = result(20), result(20, bytes_per_sample=GIB * 11 // 10, environment={"torch": "2.14.0"})
    return [finished_on_day(day, answer) for day, answer in enumerate([before] * 4 + [after] * 4)]


def trend(client: Client, **query: str) -> dict[str, Any]:
    response = client.get(TREND, {"model": "bert-tiny", "gpu": CARD.name, **query})
    assert response.status_code == 200, response.content
    return dict(response.json())


def test_a_trend_has_its_points_and_steps_with_what_changed(alice_client: Client) -> None:
    runs = grown()
    [boundary, peak] = trend(alice_client)["series"]
    assert [point["run"] for point in boundary["points"]] == [run.pk for run in runs]
    assert (boundary["steps"], peak["unit"], peak["batch_size"]) == ([], "bytes", 20)
    [step] = peak["steps"]
    assert (step["run"], step["previous_run"], step["is_worse"]) == (runs[4].pk, runs[3].pk, True)
    assert step["fraction"] == pytest.approx(0.1, abs=0.001)
    assert step["changes"] == [{"name": "torch", "before": "2.13.0", "after": "2.14.0"}]


def test_a_speed_has_its_unit_its_size_and_its_interval(alice_client: Client) -> None:
    plain = result(8)
    timed = replace(plain.largest, samples_per_second=100.0, samples_per_second_low=98.0, samples_per_second_high=103.0)
    finished_on_day(0, replace(plain, largest=timed, fastest=timed, recommended=timed))
    *_, speed = trend(alice_client)["series"]
    assert (speed["metric"], speed["unit"], speed["better"]) == ("speed", "samples_per_second", "higher")
    assert speed["batch_size"] == 8
    [point] = speed["points"]
    assert (point["low"], point["value"], point["high"]) == (98.0, 100.0, 103.0)


def test_a_step_is_acknowledged(alice_client: Client) -> None:
    runs = grown()
    body = {"run": runs[4].pk, "metric": "peak", "note": "the new torch"}
    answer = alice_client.post(NOTES, body, content_type="application/json")
    assert (answer.status_code, answer.json()["acknowledged_by"]) == (200, "alice")
    [step] = trend(alice_client)["series"][1]["steps"]
    assert step["acknowledgement"]["note"] == "the new torch"


def test_a_note_is_replaced_by_its_author_and_managers_alone(alice_client: Client, root_client: Client) -> None:
    body = {"run": finished().pk, "metric": "peak"}
    bob = Client()
    bob.force_login(make_user("bob"))

    def say(client: Client, note: str) -> int:
        return client.post(NOTES, {**body, "note": note}, content_type="application/json").status_code

    said = [say(alice_client, "a"), say(bob, "b"), say(alice_client, "c"), say(root_client, "d")]
    assert said == [200, 403, 200, 200]
    entries = AuditEntry.objects.filter(action="run.acknowledge").order_by("id")
    assert [entry.after["note"] for entry in entries] == ["a", "c", "d"]
    assert [entry.before and entry.before["note"] for entry in entries] == [None, "a", "c"]


@pytest.mark.parametrize(
    ("wrong", "pointer"), [({"run": 4711}, "/run"), ({"metric": "colour"}, "/metric"), ({"note": " "}, "/note")]
)
def test_a_wrong_note_names_its_place(alice_client: Client, wrong: dict[str, Any], pointer: str) -> None:
    body = {"run": finished().pk, "metric": "peak", "note": "why", **wrong}
    answer = alice_client.post(NOTES, body, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)
