"""Every address the portal has, and five people who ask for them, each with a valid request where there can be one."""

import json
import re
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from analysis.accounts.tokens import token_create
from analysis.audit.record import record
from analysis.lists.trend.series import METRICS
from analysis.models import (
    AllowedHost,
    ApiToken,
    Delivery,
    DeliveryState,
    Device,
    GpuPrice,
    Quota,
    Run,
    SavedView,
    ShareLink,
    Subscription,
    Tag,
    TrendAcknowledgement,
    Trust,
)
from analysis.news.subscriptions import Wish, subscription_create, subscription_test
from analysis.permissions import MANAGER, OPERATOR, VIEWER
from analysis.runs import services
from analysis.runs.marks.share_links import share_link_create
from analysis.runs.reported.reports import Sender, report_begin
from analysis.runs.services import LogLine
from tests.factories import make_claimed_run, make_measured_run, make_probe, make_spec, make_user
from tests.factories.reports import HOST, make_document
from tests.runs.test_validations import BF16, answered

PEOPLE = ("anonymous", "viewer", "operator", "other", "manager")
"""`operator` has started the runs, and owns the view and the token, that the addresses name; `other` is one, too."""

UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
_ROLES = {"viewer": VIEWER, "operator": OPERATOR, "other": OPERATOR, "manager": MANAGER}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>.*?\)(?=/|\$)")

FINISHED, UNDER_WAY, DEVICE = "finished", "under way", "devices"
"""Stand for the numbers of the two runs and of their device."""
REPORTED = "1" * 32
"""The key of a run that the operator reports."""

_SUBSCRIPTION = {"name": "new", "channel": "webhook", "kinds": ["run.failed"], "url": "https://lab.example/hook"}
BODIES: dict[str, Any] = {
    "POST api/v1/subscriptions/": _SUBSCRIPTION,
    "PATCH api/v1/subscriptions/<int:pk>/": {"name": "changed"},
    "POST account/notifications/new/": _SUBSCRIPTION,
    "POST account/notifications/<int:subscription_id>/": _SUBSCRIPTION,
    "POST analyze": {"model_name": "bert-tiny"},
    "POST api/v1/runs/": {"model": "bert-tiny", "device": "cpu"},
    "PATCH api/v1/runs/<int:pk>/": {"note": "changed"},
    "POST api/v1/estimates/": {"model": "bert-tiny", "gpu": "a10"},
    "POST estimates/": {"model": "bert-tiny", "gpu": "a10", "current_batch_size": 16},
    "POST api/v1/commands/<str:name>/runs/": {"device": "cpu"},
    "POST api/v1/validations/": {"model": "bert-tiny", "device": "cpu"},
    "POST validations/new/": {
        "model": "bert-tiny",
        "device": DEVICE,
        "precision": "fp32",
        "optimizer": "adamw",
        "mode": "train",
    },
    "POST api/v1/runs/<int:pk>/measure-changes/": {"variants": [BF16]},
    "POST runs/<int:run_id>/measure-changes/": {"variant": [BF16], "device": DEVICE},
    "POST runs/<int:run_id>/what-to-change/": {"batch_size": 64, "scope": "first"},
    "POST what-to-change/": {"model": "bert-tiny", "gpu": "a10", "batch_size": 64, "scope": "first"},
    "POST commands/<str:name>/": {"measuring-device": DEVICE},
    "POST fleet/devices/<int:device_id>/drain/": {"drained": "1"},
    "POST api/v1/fits/": {"model": "bert-tiny", "device": "cpu", "batch_size": 4, "precision": "bf16"},
    "POST api/v1/compare/": {"ids": [FINISHED, UNDER_WAY]},
    "POST api/v1/saved-views/": {"name": "mine", "query": "state=failed"},
    "POST api/v1/tokens/": {"name": "mine", "may_write": False},
    "POST api/v1/trends/acknowledgements/": {"run": FINISHED, "metric": METRICS[0], "note": "n"},
    "POST api/v1/reports/": {
        "run_key": "0" * 32,
        "kind": "measurement",
        "host": HOST,
        "spec": {"model": "bert-tiny", "device": "cpu"},
    },
    "POST api/v1/reports/<str:run_key>/events/": {"first": 0, "events": []},
    "POST api/v1/results/": json.loads(make_document()),
    "POST api/v1/results/known/": {"sha256": ["0" * 64]},
    "POST runs/change/": {"run": FINISHED, "action": "delete"},
    "POST runs/views/": {"name": "mine", "query": "state=failed"},
    "POST runs/<int:run_id>/annotate/": {"note": "changed"},
    "POST runs/new/": {
        "kind": "estimate",
        "model": "bert-tiny",
        "gpu": "a10",
        "precision": "fp32",
        "optimizer": "adamw",
        "mode": "train",
        "current_batch_size": "16",
    },
    "POST runs/<int:run_id>/pin/": {"pin": "1"},
    "POST trend/acknowledge/<int:run_id>/": {"metric": METRICS[0], "note": "n"},
    "POST runs/<int:run_id>/share/": {"days": "7"},
    "POST api/v1/share-links/": {"run": FINISHED, "days": 7},
    "POST account/password/": {"old_password": "pw", "new_password1": "long and new", "new_password2": "long and new"},
    "POST account/tokens/": {"name": "mine", "scope": "read"},
}
"""Valid ones; where there is nothing to say, an empty one must do."""

QUERIES = {
    "api/v1/runs/<int:pk>/wait/": "timeout=0",
    "api/v1/recommendation/": "model=bert-tiny&device=cpu&current_batch_size=4",
    "api/v1/trends/": "model=bert-tiny&gpu=Test%20CPU",
    "compare/": "ids={finished},{under way}",
}


def routes() -> list[str]:
    """As Django's resolver has them: `runs/<int:run_id>/`."""
    return list(_below(get_resolver(), ""))


def _below(resolver: URLResolver, prefix: str) -> Iterator[str]:
    for found in resolver.url_patterns:
        address = prefix + str(found.pattern)
        if isinstance(found, URLPattern):
            yield address
        else:
            yield from _below(found, address)


class Portal:
    """Some rows, most of them the operator's, and a session for each person."""

    def __init__(self) -> None:
        self.people = {name: make_user(name, role, password="pw") for name, role in _ROLES.items()}
        self.rows = _make_rows(self.people["operator"])
        self._cookies = {name: _signed_in(person) for name, person in self.people.items()}
        self._before = _state()

    def ask(self, person: str, method: str, route: str) -> str:
        """The status, `login` for being sent there, and a `+` if anything changed; then it is taken back."""
        client = Client(raise_request_exception=False)
        client.cookies = SimpleCookie(self._cookies.get(person, ""))
        with transaction.atomic():
            response = getattr(client, method.lower())(self.address(method, route), **self._content(method, route))
            has_changed = method in UNSAFE and response.status_code < 400 and _state() != self._before
            transaction.set_rollback(True)
        is_sent_to_login = response.status_code == 302 and response.headers["Location"].startswith("/login/")
        return ("login" if is_sent_to_login else str(response.status_code)) + "+" * has_changed

    def _content(self, method: str, route: str) -> dict[str, Any]:
        body = self._numbered(BODIES.get(f"{method} {route}", {}))
        if method == "GET":
            return {}
        if route.startswith("api/") or route == "analyze":
            return {"data": body, "content_type": "application/json", "headers": {"Prefer": "respond-async"}}
        return {"data": body} if method == "POST" else {}

    def _numbered(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._numbered(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self._numbered(part) for part in value]
        return self.rows[value] if value in (FINISHED, UNDER_WAY, DEVICE) else value

    def read(self, person: str, method: str, route: str) -> str:
        client = Client(raise_request_exception=False)
        client.cookies = SimpleCookie(self._cookies.get(person, ""))
        return getattr(client, method.lower())(self.address(method, route)).content.decode()

    def address(self, method: str, route: str, number: str = "") -> str:
        """Fill the places of a route with the operator's things, or with this number."""
        place = route.replace("^", "").replace("$", "")
        address = "/" + _PARAMETER.sub(lambda match: number or self._value(place, match[1] or match[2]), place)
        query = QUERIES.get(route, "").format_map(self.rows) if method == "GET" else ""
        return f"{address}?{query}" if query else address

    def _value(self, route: str, name: str) -> str:
        fixed = {"key": "memory", "name": "measuring", "url": "no/such/page", "app_label": "analysis"}
        if route.startswith("admin/r/"):
            return str(ContentType.objects.get_for_model(Run).pk if name == "content_type_id" else self.rows[FINISHED])
        if name == "object_id":
            return _first_row(route)
        if route.endswith("cancel/"):
            return str(self.rows[UNDER_WAY])
        if route.endswith("measure-changes/"):
            return str(self.rows["answered"])
        if name == "id":
            return str(self.rows["people"])
        kind = f"{name.removesuffix('_id')}s" if name.endswith("_id") else route.removeprefix("api/v1/").split("/")[0]
        return fixed.get(name) or str(self.rows.get(kind.removeprefix("saved-"), 1))


def _make_rows(owner: User) -> dict[str, Any]:
    finished = make_measured_run()
    under_way = make_claimed_run(finished.device)
    lease = {"run_id": under_way.pk, "token": under_way.token}
    services.measurement_add(**lease, sequence=1, probe=make_probe(), is_carried=False)
    services.log_add(**lease, first_sequence=1, lines=[LogLine("info", "a line")])
    with_changes = answered()
    Run.objects.update(requested_by=owner)
    Tag.objects.create(name="a-tag")
    GpuPrice.objects.create(gpu="a10", price_per_hour_usd=1.0, valid_from=timezone.now())
    Quota.objects.create(user=owner, runs_waiting_max=50)
    TrendAcknowledgement.objects.create(run=finished, metric=METRICS[0], note="n", acknowledged_by=owner)
    record("made", target=finished)
    Trust.objects.create(host=HOST, trusted_by=owner)
    sender = Sender(owner, None, HOST)
    report_begin(sender=sender, run_key=REPORTED, spec=make_spec(device="cpu"), engine_version="")
    view = SavedView.objects.create(owner=owner, name="v", query="state=failed")
    link, secret = share_link_create(run_id=finished.pk, by=owner, days=7)
    token, _ = token_create(owner=owner, name="t", may_write=True, expires_at=None)
    AllowedHost.objects.create(host="lab.example")
    wish = Wish("s", "webhook", ["run.finished"], "https://lab.example/hook")
    subscription, _ = subscription_create(owner=owner, wish=wish)
    subscription_test(subscription=subscription)
    Delivery.objects.update(state=DeliveryState.DELIVERED)  # one test at a time
    return {
        "subscriptions": subscription.pk,
        "runs": finished.pk,
        FINISHED: finished.pk,
        UNDER_WAY: under_way.pk,
        "answered": with_changes.pk,
        "views": view.pk,
        "reports": REPORTED,
        "tokens": token.pk,
        "links": link.pk,
        "share-links": link.pk,
        "share": secret,
        "devices": finished.device_id,
        "people": owner.pk,
    }


def _state() -> list[Any]:
    """What people can change: not what is merely noted of them, such as when they were last seen."""
    models = (Run, SavedView, ShareLink, Device, Tag, TrendAcknowledgement, GpuPrice, Quota, Subscription, Delivery)
    people = User.objects.order_by("pk").values_list("pk", "password", "is_active")
    tokens = ApiToken.objects.order_by("pk").values_list("pk", "revoked_at")
    return [*(list(model._base_manager.order_by("pk").values_list()) for model in models), list(people), list(tokens)]


def _first_row(route: str) -> str:
    _, app, model, *_ = route.split("/")
    row = apps.get_model(app, model)._base_manager.order_by("pk").values_list("pk", flat=True).first()
    return str(row or 0)


def _signed_in(person: User) -> str:
    client = Client()
    client.force_login(person)
    return client.cookies.output(header="", sep=";")
