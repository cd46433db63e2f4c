"""Runs of other machines: begun, heard from, and finished by their result document. Every call may be repeated."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from typing import Any, NamedTuple

from django.conf import settings
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api import limits
from analysis.api.result_schema import RESULT
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.strict_input import StrictBody, StrictJSONParser, StrictText, body_object, validated
from analysis.api.v1.base.views import StrictView
from analysis.api.waiting import document_place
from analysis.audit.record import record
from analysis.http.problem_details import Problem, bad_field, part, pointer_to
from analysis.models import ApiToken, Run
from analysis.models.report import ENGINE_VERSION_LENGTH
from analysis.models.text import storable_json
from analysis.permissions import signed_in_user
from analysis.runs.reported.document import (
    HOST_LENGTH,
    REPORTED_KINDS,
    ImpossibleDocumentError,
    checked_host,
    checked_run_key,
    read_document,
    read_spec,
)
from analysis.runs.reported.reports import (
    NotYourReportError,
    ReportConflictError,
    Sender,
    report_begin,
    result_store,
    results_known,
)
from analysis.workers.engine_events import EVENTS
from analysis.workers.reported_events import EventsMissingError, events_store
from engine.report.protocol import DIGESTS_MOST, EVENTS_MOST, HEARTBEAT_SECONDS, PROBES_MOST

_KEY_HEADER = "Idempotency-Key"


class ReportSerializer(StrictBody):
    """A run that begins on another machine."""

    run_key = StrictText(help_text="32 small hexadecimal digits, drawn by the sender when the run starts.")
    kind = serializers.ChoiceField(REPORTED_KINDS, help_text="A command is a tuned training command.")
    host = StrictText(max_length=HOST_LENGTH)
    spec = serializers.DictField(help_text="As in the `started` event.")
    engine_version = StrictText(max_length=ENGINE_VERSION_LENGTH, required=False, allow_blank=True, default="")


class EventsSerializer(StrictBody):
    """Events of a run, in their order."""

    first = serializers.IntegerField(min_value=0, max_value=2**31 - 1, help_text="Number of the first of these events.")
    events = serializers.ListField(
        child=serializers.DictField(),
        max_length=EVENTS_MOST,
        help_text=f"Empty: a heartbeat alone. More than {PROBES_MOST} probes are refused with 413.",
    )


class DigestsSerializer(StrictBody):
    """Digests of result documents."""

    sha256 = serializers.ListField(
        child=serializers.RegexField(r"^[0-9a-f]{64}\Z", trim_whitespace=False), min_length=1, max_length=DIGESTS_MOST
    )


_PLACE: dict[str, Any] = {"id": serializers.IntegerField(), "url": serializers.URLField(help_text="Page of the run.")}
_REPORTED = inline_serializer(
    "ReportedRun",
    {
        **_PLACE,
        "next": serializers.IntegerField(help_text="Number of the event that is expected next."),
        "heartbeat_seconds": serializers.FloatField(help_text="How often the sender should be heard from, at least."),
    },
)
_RECEIVED = inline_serializer(
    "ReceivedEvents",
    {
        "next": serializers.IntegerField(help_text="Number of the event that is expected next."),
        "cancel_requested": serializers.BooleanField(help_text="Whether the sender is to stop the run."),
    },
)
_STORED = inline_serializer(
    "StoredResultDocument",
    {**_PLACE, "sha256": serializers.CharField(help_text="SHA-256 of the document's bytes as received.")},
)
_KNOWN = inline_serializer(
    "KnownResultDocuments",
    {
        "known": serializers.DictField(
            help_text="By the SHA-256; one that is not here is left out.",
            child=inline_serializer(
                "KnownResultDocument",
                {**_PLACE, "next": serializers.IntegerField(help_text="How many events of the run have arrived.")},
            ),
        )
    },
)
_DOCUMENT: dict[str, Any] = {
    "oneOf": [
        {
            "type": "object",
            "required": ["exit_status", "result"],
            "properties": {"exit_status": {"type": "integer"}, "result": RESULT},
        },
        *RESULT["oneOf"],
    ]
}


class Reports(StrictView):
    takes_reports = True
    throttle_scope = "report"

    @extend_schema(request=ReportSerializer, responses={201: _REPORTED, 200: _REPORTED})
    def post(self, request: Request) -> Response:
        """Announce a run that this sender executes: its page is live from now on. The same run_key is the same run.

        Under a run_key of another person it is a run of your own.
        """
        given = validated(ReportSerializer, body_object(request))
        run_key, spec = checked_run_key(given["run_key"]), read_spec(given["kind"], given["spec"])
        sender = _sender(request, checked_host(given["host"]))
        run, is_new = report_begin(sender=sender, run_key=run_key, spec=spec, engine_version=given["engine_version"])
        # several heartbeats fit into a lease, so that a lost one does not end a run
        seconds = min(HEARTBEAT_SECONDS, float(settings.RUN_LEASE_SECONDS) / 4)
        content = {"next": run.report.events_received, "heartbeat_seconds": seconds}
        return Response({**_place(run, request), **content}, status=201 if is_new else 200)


class EventsParser(StrictJSONParser):
    """Events of a call: more than an ordinary body. Their text is an engine's or a training's: it is made storable."""

    any_text = True
    limit_setting = "REPORTED_EVENTS_MAX_BYTES"

    def read(self, body: bytes) -> Any:
        return storable_json(super().read(body))


class ReportEvents(StrictView):
    takes_reports = True
    throttle_scope = "events"
    parser_classes = (EventsParser,)

    @extend_schema(request=EventsSerializer, responses={200: _RECEIVED, **openapi_parameters.problems(409)})
    def post(self, request: Request, run_key: str) -> Response:
        """Store the events of `--events` that are new, and say whether to go on. 409 names the event that is missing.

        The `result` event is left out: its document goes to /api/v1/results/. An `error` event ends the run as failed,
        one with the code `stopped` as interrupted.
        """
        values = validated(EventsSerializer, body_object(request))
        events = values["events"]
        for number, event in enumerate(events):
            if event.get("event") == "result":
                raise bad_field(f"events/{number}", "a result goes to /api/v1/results/, as the document of its file")
            if event.get("event") not in EVENTS:
                raise bad_field(f"events/{number}", f"event must be one of {', '.join(EVENTS)}")
        _check_probes(sum(event["event"] == "probe" for event in events))
        try:
            received = events_store(
                run_key=run_key, person=signed_in_user(request), first=values["first"], events=events
            )
        except NotYourReportError as exc:
            detail = "There is no run with this run_key that you reported."
            raise Problem(404, detail=detail, code="not_found") from exc
        except EventsMissingError as exc:
            detail = f"Events before these have not arrived: {exc}."
            raise Problem(409, detail=detail, code="events_missing", members={"next": exc.expected}) from exc
        return Response({"next": received.next, "cancel_requested": received.cancel_requested})


class Body(NamedTuple):
    """A body with the digest of its bytes, by which a document is recognised."""

    content: Any
    sha256: str


class ResultParser(EventsParser):
    """A result document, with the digest of its bytes."""

    limit_setting = "REPORTED_RESULT_MAX_BYTES"

    def read(self, body: bytes) -> Body:
        return Body(super().read(body), hashlib.sha256(body).hexdigest())


class Results(StrictView):
    takes_reports = True
    throttle_scope = "report"
    parser_classes = (ResultParser,)

    @extend_schema(
        parameters=[openapi_parameters.DOCUMENT_KEY],
        request={"application/json": _DOCUMENT},
        responses={201: _STORED, 200: _STORED, **openapi_parameters.problems(409, 422)},
    )
    def post(self, request: Request) -> Response:
        """Store a result file. It finishes the run of its run_key, or becomes a finished run.

        Its facts are stored: what was measured, and how the run ended. Every figure that follows from them is worked
        out here, whatever the document says. Figures that no machine can have measured are refused with 422, whose
        `errors` have `field`, `claimed` and `allowed` of the first ten; `impossible_fields` is their number.
        503 with Retry-After while several others are being read.
        """
        person = signed_in_user(request)
        with document_place(person) as has_place:
            if not has_place:
                detail = "Several result documents are read at this moment: send this one again."
                seconds = secrets.choice(limits.DOCUMENT_BUSY_SECONDS)
                raise Problem(503, detail=detail, code="busy", headers={"Retry-After": str(seconds)})
            body = request.data
            if not isinstance(body, Body):
                raise Problem(400, detail="The body must be a result document.")
            _check_key(request, body.sha256)
            if known := results_known(person, [body.sha256]):
                return _stored(known[body.sha256], request, body.sha256, status=200)
            try:
                document = read_document(body.content)
            except ImpossibleDocumentError as exc:
                raise impossible(exc, body.sha256) from exc
        sender = _sender(request, document.host)
        try:
            run, is_new = result_store(sender=sender, document=document, sha256=body.sha256)
        except ReportConflictError as exc:
            raise Problem(409, detail=str(exc), code="other_result") from exc
        return _stored(run, request, body.sha256, status=201 if is_new else 200)


class KnownResults(StrictView):
    takes_reports = True
    throttle_scope = "report"

    @extend_schema(request=DigestsSerializer, responses={200: _KNOWN})
    def post(self, request: Request) -> Response:
        """Say which of these documents you sent already, so that a sender of many begins with what is missing."""
        runs = results_known(signed_in_user(request), validated(DigestsSerializer, body_object(request))["sha256"])
        places = {sha256: {**_place(run, request), "next": run.report.events_received} for sha256, run in runs.items()}
        return Response({"known": places})


def _stored(run: Run, request: Request, sha256: str, *, status: int) -> Response:
    return Response({**_place(run, request), "sha256": sha256}, status=status)


def _sender(request: Request, host: str) -> Sender:
    token = request.auth if isinstance(request.auth, ApiToken) else None
    return Sender(signed_in_user(request), token, host)


def _place(run: Run, request: Request) -> dict[str, Any]:
    return {"id": run.pk, "url": request.build_absolute_uri(run.get_absolute_url())}


def _check_probes(count: int) -> None:
    """Raise a 413, on which a sender of any version sends fewer: each probe is a row, written under a lock."""
    if count > PROBES_MOST:
        detail = f"events: at most {PROBES_MOST} of them may be probes, these have {count}. Send them in more calls."
        raise Problem(413, detail=detail, code="too_many_probes", errors=[part("/events", detail, "too_many_probes")])


def _check_key(request: Request, sha256: str) -> None:
    key = request.headers.get(_KEY_HEADER)
    if key is not None and not hmac.compare_digest(key.lower().encode(), sha256.encode()):
        detail = f"{_KEY_HEADER} must be the SHA-256 of the body, which is {sha256}: the document changed on its way."
        raise Problem(400, detail=detail, code="bad_key")


def impossible(refused: ImpossibleDocumentError, sha256: str) -> Problem:
    """Record that the document is refused, and return the answer."""
    count, shown = len(refused.found), refused.found[: limits.IMPOSSIBLE_SHOWN]
    fields = [each.field[: limits.IMPOSSIBLE_LENGTH] for each in shown]
    facts = {"host": refused.host, "sha256": sha256, "fields": fields, "impossible_fields": count}
    record("run.report_refuse", target=("report", refused.run_key), after=facts)
    more = f" and {count - len(shown)} more" if count > len(shown) else ""
    detail = f"No machine can have measured: {'; '.join(fields)}{more}. Nothing was stored."
    errors = []
    for found, field in zip(shown, fields, strict=True):
        claimed, allowed = _cut(found.claimed), _cut(found.allowed)
        pointer = pointer_to(*filter(None, re.split(r"[.\[\]]+", field)))  # for a field such as probes[3].steps
        place = part(pointer, f"is {claimed!r}, the rest of the document allows {allowed!r}")
        errors.append({**place, "field": field, "claimed": claimed, "allowed": allowed})
    return Problem(422, detail=detail, code="impossible", errors=errors, members={"impossible_fields": count})


def _cut(value: Any) -> Any:
    """Return a value as it is, or the beginning of its JSON where that is long."""
    text = json.dumps(value, default=str)
    most = limits.IMPOSSIBLE_LENGTH
    return value if len(text) <= most else f"{text[:most]} ... ({len(text)} characters)"
