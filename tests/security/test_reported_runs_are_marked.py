"""Whatever shows a figure of a reported run says in the same answer who reported it, and whether it is trusted.

Every address is asked for, as Django's resolver has them: a new one that shows figures without their origin fails here.
"""

import json
import re
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction
from django.test import Client

from analysis.models import Delivery, Device, NewsKind, Run
from analysis.news.fan_out import dispatch_waiting
from analysis.news.subscriptions import Wish, subscription_create
from analysis.runs import services
from analysis.runs.marks.share_links import share_link_create
from analysis.runs.matrix_store import cells_renew
from analysis.runs.services import LogLine
from engine.facts.result import DeviceFacts
from engine.text.units import GIB, MIB
from tests.factories import STACK, make_claimed_run, make_device, make_user
from tests.factories.results import result
from tests.pages.validations.test_validations_page import ended
from tests.security.routes import FINISHED, UNDER_WAY, Portal, routes

pytestmark = pytest.mark.django_db

LARGEST = 7351
FIGURE = re.compile(r"(?<![\w.])7,?35[12](?!\w)")
"""The largest batch size of the reported run, and the size that was refused: no other row has them."""
PERSON, SENDER = "kim", "dgx-01"

NO_FIGURE = {
    r"": "sends to the home page, or answers the index of the API",
    r"readyz|metrics|health|models|static/.*": "of the server and the catalogue, not of a run",
    r"analyze": "waits for a new run of this portal's own workers",
    r"api/v1/|api/schema/|api/docs/": "describe the API",
    r"api/v1/(models|settings|gpus|devices|commands)/.*": "what may be measured, and where",
    r"api/v1/(tokens|saved-views|share-links|audit)/.*": "rows about people and their settings, with numbers of runs",
    r"api/v1/subscriptions/.*": "settings, and the state of deliveries without their body",
    r"api/v1/(reports|results)/.*": "take reports, and answer a number and an address",
    r"api/v1/(estimates|trends/acknowledgements)/": "lists estimates, which are not reported; stores a note",
    r"api/v1/runs/<int:pk>/(attempts|wait)/": "states, which carry the origin all the same",
    r"estimates/|what-to-change/|runs/<int:run_id>/what-to-change/": "are of estimates, which are not reported",
    r"devices/|fleet/.*|commands/.*|help/.*": "devices, registered commands and documents",
    r"runs/<int:run_id>/live/": "parts of the page of a live run, whose other parts have the mark",
    r"(login|logout|account)/.*": "the reader's own account",
    r"admin/(queue|login|logout|password_change|autocomplete|jsi18n|r)/.*|admin/": "the panel itself; the queue",
    r"admin/\(.*|admin/\^.*": "lists of lists",
    r"admin/auth/.*": "people",
    r"admin/analysis/(auditentry|host|device|tag|allowedhost|subscription|gpuprice|retentionrule)/.*": "of no run",
    r"admin/analysis/(apitoken|quota|savedview|trust)/.*": "of people and of what they may do",
    r"admin/analysis/(trendacknowledgement|sharelink|report|attempt)/.*": "of a run, without its figures",
    r"admin/analysis/\w+/(add|<path:object_id>/(history|delete))/": "no figures: refused, or the audit log",
    r"admin/analysis/\w+/<path:object_id>/": "sends to change/",
    r"admin/analysis/delivery/": "numbers of deliveries",
}
"""Addresses that show no figure of a run, as patterns, with the reason. The test also fails where one does."""

ONLY_TRUSTED = (
    *("api/v1/recommendation/", "api/v1/fits/", "api/v1/matrix/", "api/v1/trends/"),
    *("matrix/", "trend/", "admin/analysis/matrixcell/", "admin/analysis/matrixcell/<path:object_id>/change/"),
)
"""These leave a run out until its sender is trusted, and name its origin afterwards."""

BADGE = "share/<slug:secret>.svg"
"""A run whose sender is trusted shows no more than a run of this lab, which stands for both."""


class Walk(Portal):
    """The portal of the other tests, with a finished run and a validation that `kim` reported from `dgx-01`."""

    def __init__(self, *, is_trusted: bool) -> None:
        super().__init__()
        self.is_trusted = is_trusted
        owner = make_user(PERSON)
        subscription_create(owner=owner, wish=Wish("s", "webhook", [NewsKind.FINISHED], "https://lab.example/hook"))
        device = make_device("other", name="Card of kim", capacity_bytes=16 * GIB)
        Device.objects.exclude(pk=device.pk).update(enabled=False)
        _failed_here(device)
        validation, self.run = ended(device=device), _measured(device)
        Run.objects.filter(pk=validation.pk).update(device_name=f"Card {LARGEST}")
        both = Run.objects.filter(pk__in=(self.run.pk, validation.pk))
        both.update(reported_from=SENDER, is_trusted=is_trusted, requested_by=owner)
        cells_renew(run_ids=[self.run.pk, validation.pk])
        while dispatch_waiting():
            pass
        _, secret = share_link_create(run_id=self.run.pk, by=owner, days=7)
        self.rows |= {"runs": self.run.pk, FINISHED: self.run.pk, "share": secret}

    def answers(self, route: str) -> Iterator[tuple[str, str, str]]:
        """Yield method, type and text of each answer with a content; what it changed is taken back."""
        for method in ("GET", "POST", *(["PATCH"] if route.startswith("api/") else [])):
            client = Client(raise_request_exception=False, headers={"Accept": "*/*"})
            client.cookies = SimpleCookie(self._cookies["manager"])
            with transaction.atomic():
                found = getattr(client, method.lower())(self.address(method, route), **self._content(method, route))
                text = b"".join(found) if found.streaming else found.content
                transaction.set_rollback(True)
            if found.status_code < 300:
                yield method, found.headers.get("Content-Type", "").partition(";")[0], text.decode()

    def address(self, method: str, route: str, number: str = "") -> str:
        queries = {
            "api/v1/recommendation/": "model=bert-tiny&device=cpu&current_batch_size=4",
            "api/v1/trends/": "model=bert-tiny&gpu=Card%20of%20kim&current_batch_size=4",
            "trend/": "model=bert-tiny&gpu=Card%20of%20kim",
            "compare/": f"ids={self.rows[FINISHED]},{self.rows[UNDER_WAY]}",
        }
        plain = super().address(method, route, number).partition("?")[0]
        return f"{plain}?{queries[route]}" if method == "GET" and route in queries else plain

    def _value(self, route: str, name: str) -> str:
        if name != "object_id" or route.startswith("admin/r/"):
            return super()._value(route, name)
        _, app, kind, *_ = route.split("/")
        model = apps.get_model(app, kind)
        rows = model._base_manager.order_by("pk")
        if model is Run:
            return str(self.run.pk)
        if model is Delivery:
            return str(rows.get(event__run=self.run, subscription__owner__username=PERSON).pk)
        if any(field.name == "run" for field in model._meta.fields):
            rows = rows.filter(run=self.run) | rows.none()
        return str(rows.values_list("pk", flat=True).last() or 0)

    def _content(self, method: str, route: str) -> dict[str, Any]:
        if (method, route) == ("POST", "api/v1/fits/"):
            body = {"model": "bert-tiny", "device": "cpu", "batch_size": LARGEST if self.is_trusted else 4}
            return {"data": body, "content_type": "application/json", "headers": {"Prefer": "respond-async"}}
        return super()._content(method, route)


def _failed_here(device: Device) -> None:
    """A run of this portal that says which software the device has now."""
    run = make_claimed_run(device)
    services.attempt_set(run_id=run.pk, token=run.token, environment={"environment": dict(STACK)})
    services.run_fail(run_id=run.pk, token=run.token, code="error", message="It failed.")


def _measured(device: Device) -> Run:
    """A finished run of this device: 7,351 fit, 7,352 do not."""
    run = make_claimed_run(device, current_batch_size=4)
    lease = {"run_id": run.pk, "token": run.token}
    facts = DeviceFacts("cpu", "cpu", device.name, device.capacity_bytes)
    answer = result(LARGEST, bytes_per_sample=MIB, card=facts, environment=STACK, spec=run.run_spec)
    services.attempt_set(**lease, environment={"device": facts.to_dict(), "environment": answer.environment})
    services.log_add(**lease, first_sequence=1, lines=[LogLine("info", f"batch {LARGEST} fits")])
    for sequence, probe in enumerate(answer.probes, start=1):
        services.measurement_add(**lease, probe=probe, sequence=sequence, is_carried=False)
    services.run_finish(**lease, result=answer.to_dict())
    return Run.objects.with_places().get(pk=run.pk)


def unmarked(value: Any, is_trusted: bool) -> bool:
    """Whether JSON has a figure of the run that no object around it marks."""
    if isinstance(value, list):
        return any(unmarked(part, is_trusted) for part in value)
    if not isinstance(value, dict):
        return bool(FIGURE.search(str(value)))
    if _is_mark(value, is_trusted) or any(_is_mark(run, is_trusted) for run in _members(value, "runs")):
        return False
    return any(unmarked(part, is_trusted) for part in value.values())


def _is_mark(value: Any, is_trusted: bool) -> bool:
    if not isinstance(value, dict):
        return False
    origin = (value.get("reported_from"), value.get("is_trusted"))
    return origin == (SENDER, is_trusted) and value.get("origin", "reported") is not None


def _members(value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


def says_it(content_type: str, text: str, is_trusted: bool) -> bool:
    """Whether each figure in this answer has its origin, in the way of its format."""
    if content_type == "application/json":
        return not unmarked(json.loads(text), is_trusted)
    if content_type == "text/event-stream":
        first = next(line for line in text.splitlines() if line.startswith("data: "))
        return _is_mark(json.loads(first.removeprefix("data: ")), is_trusted)
    if content_type == "text/csv":
        lines = [line for line in text.splitlines() if FIGURE.search(line)]
        return all(SENDER in line and str(is_trusted) in line for line in lines)
    words = " ".join(re.sub(r"<[^>]*>", " ", text).lower().split())
    by_whom = f"reported by {PERSON} from {SENDER}"
    places = (by_whom, "reported from another machine", "reported, not", '"reported_from"')
    doubt = ("not trusted", "false")
    names_origin = any(place in words.replace("&quot;", '"') for place in places) or "> reported<" in text
    return names_origin and (is_trusted or any(each in words for each in doubt))


@pytest.mark.parametrize("is_trusted", [False, True])
def test_every_answer_with_a_figure_of_a_reported_run_has_its_origin_and_trust(is_trusted: bool) -> None:
    walk = Walk(is_trusted=is_trusted)
    left_out = set() if is_trusted else set(ONLY_TRUSTED)
    without, unexpected, unreached = [], [], []
    for route in routes():
        if is_trusted and route == BADGE:
            continue
        found = list(walk.answers(route))
        figures = [(method, kind, text) for method, kind, text in found if FIGURE.search(text)]
        is_exempt = any(re.fullmatch(pattern, route) for pattern in NO_FIGURE) or route in left_out
        without += [f"{method} {route}" for method, *answer in figures if not says_it(*answer, is_trusted)]
        if figures and is_exempt:
            unexpected.append(route)
        if not figures and not is_exempt and any(method == "GET" for method, *_ in found):
            unreached.append(route)
    wrong = [f"no origin: {each}" for each in without]
    wrong += [f"in the list without figures, but shows one: {route}" for route in unexpected]
    wrong += [f"shows no figure: make one here, or give a reason in the list: {route}" for route in unreached]
    assert not wrong, "\n".join(wrong)
