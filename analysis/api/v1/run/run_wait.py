"""Waiting for a run: one request for a shell, a stream of events for tooling."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import Any, Self

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from analysis.api import limits
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.serializers import MeasurementSerializer
from analysis.api.v1.base.views import StrictViewSet
from analysis.api.v1.run.run_parts import EventSerializer, StateMembers
from analysis.api.v1.run.runs import poll_again, run_or_404
from analysis.api.waiting import Person, streams, wait_until_over
from analysis.database import DATABASE_AWAY, connections_release
from analysis.http.problem_details import Problem
from analysis.http.query_string import LARGEST_ID, StrictQueryForm, WholeNumberField
from analysis.models import Measurement, Run, RunLog

EVENT_STREAM = "text/event-stream"
_END = ".end"
_BUSY = {"Retry-After": str(limits.BUSY_SECONDS)}


@dataclass(frozen=True, slots=True)
class Place:
    """How far a client has read: `17.4` names the last log line and probe, `17.4.end` says that the end was sent."""

    line: int = 0
    probe: int = 0
    is_end: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a Last-Event-ID; without one, the beginning. Raises Problem."""
        if not text:
            return cls()
        numbers, is_end = text.removesuffix(_END), text.endswith(_END)
        parts = [int(part) for part in numbers.split(".") if part.isascii() and part.isdigit() and len(part) < 20]
        if len(parts) != 2 or numbers != ".".join(map(str, parts)) or max(parts) > LARGEST_ID:
            raise Problem(400, detail="Last-Event-ID: must be the id of an event of this stream, such as 17.4")
        return cls(parts[0], parts[1], is_end)

    def __str__(self) -> str:
        return f"{self.line}.{self.probe}{_END * self.is_end}"


class WaitForm(StrictQueryForm):
    timeout = WholeNumberField(
        required=False,
        min_value=0,
        max_value=limits.WAIT_MAX_SECONDS,
        initial=limits.WAIT_SECONDS,
        help_text=f"Most seconds to wait, at most {limits.WAIT_MAX_SECONDS}.",
    )


class RunStateSerializer(StateMembers):
    """The state of a run."""

    exit_status = serializers.IntegerField(allow_null=True, help_text="Exit status of the engine.")


class RunWaits(StrictViewSet):
    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:
        """Accept any format of a stream: there is one, and errors are problems in JSON."""
        return super().perform_content_negotiation(request, force or self.action == "stream")

    @extend_schema(
        parameters=[openapi_parameters.RETRY_AFTER], responses={200: RunStateSerializer, 202: RunStateSerializer}
    )
    @action(detail=True, query_form=WaitForm)
    def wait(self, request: Request, pk: int) -> Response:
        """Wait until the run is over: 200; or until the timeout: 202, request it again.

        When too many requests wait already, the response is a 202 at once, with a longer `Retry-After`.
        """
        run = run_or_404(pk)
        has_waited = run.is_over or wait_until_over(run, self.parameters["timeout"], request.user)
        run = run_or_404(pk)
        payload = RunStateSerializer(run).data
        if run.is_over:
            return Response(payload)
        return Response(payload, 202, headers=poll_again(run) if has_waited else _BUSY)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "Last-Event-ID",
                str,
                OpenApiParameter.HEADER,
                description="`id` of the last received event: the stream continues after it.",
            )
        ],
        responses={
            (200, EVENT_STREAM): OpenApiResponse(str, description="Events `state`, `log`, `probe`, and at last `end`."),
            204: OpenApiResponse(description="The run is over, and its `end` was received: nothing follows."),
        },
    )
    @action(detail=True, url_path="events/stream")
    def stream(self, request: Request, pk: int) -> HttpResponseBase:
        """Stream state changes, log lines and probes as Server-Sent Events, until the run is over.

        The data of each is JSON: of `log` and `probe` as in the lists of events and measurements. Comments show that
        the connection is alive. A stream ends after ten minutes at the latest; clients of Server-Sent Events continue
        by themselves with Last-Event-ID. 503 with Retry-After when too many streams are open;
        half of the places are for others.
        """
        run = run_or_404(pk)
        place = Place.read(request.headers.get("Last-Event-ID", ""))
        if place.is_end and run.is_over:
            return HttpResponse(status=204)
        if not streams.take(request.user):
            detail = "Too many streams are open, of all or of yours; poll /events/ meanwhile, or try again later."
            raise Problem(503, detail=detail, code="too_many_streams", headers=_BUSY)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx would hold events back
        return StreamingHttpResponse(_stream(run.pk, place, request.user), content_type=EVENT_STREAM, headers=headers)


def _stream(run_id: int, place: Place, person: Person) -> Generator[bytes, None, None]:
    """Begin a stream, whose place among the open streams is free again when the response is closed."""
    chunks = _held(run_id, place, person)
    next(chunks)  # a generator that has not begun would free nothing
    return chunks


def _held(run_id: int, place: Place, person: Person) -> Generator[bytes, None, None]:
    try:
        yield b""
        yield from _chunks(run_id, place)
    except DATABASE_AWAY:  # the client comes again, with what it has
        connections_release()
    finally:
        streams.release(person)


def _chunks(run_id: int, place: Place) -> Generator[bytes, None, None]:
    shown: dict[str, Any] | None = None
    now = sent_at = monotonic()
    until = now + limits.STREAM_MAX_SECONDS
    yield f"retry: {limits.ASK_AGAIN_SECONDS * 1000}\n\n".encode()
    while now < until:
        # the state is read first: if the run is over by then, what is read after it is complete
        run = Run.objects.filter(pk=run_id).select_related("requested_by").defer("result", "spec").first()
        if run is None:  # deleted meanwhile
            return
        if (state := RunStateSerializer(run).data) != shown:
            shown, sent_at = state, now
            yield _event("state", place, state)
        rows = _rows_after(run_id, place)
        for name, place, data in rows:
            sent_at = now
            yield _event(name, place, data)
        if run.is_over and not rows:
            yield _event("end", replace(place, is_end=True), state)
            return
        if now - sent_at >= limits.STREAM_HEARTBEAT_SECONDS:
            sent_at = now
            yield b": the run goes on\n\n"
        if not rows:
            sleep(limits.STREAM_POLL_SECONDS)
        now = monotonic()


def _rows_after(run_id: int, place: Place) -> list[tuple[str, Place, Any]]:
    """Read the next log lines and probes, each with the place after it."""
    most, found = limits.STREAM_ROWS_AT_ONCE, []
    for line in RunLog.objects.filter(run=run_id, pk__gt=place.line).order_by("pk")[:most]:
        place = replace(place, line=line.pk)
        found.append(("log", place, EventSerializer(line).data))
    for probe in Measurement.objects.filter(run=run_id, pk__gt=place.probe).order_by("pk")[:most]:
        place = replace(place, probe=probe.pk)
        found.append(("probe", place, MeasurementSerializer(probe).data))
    return found


def _event(name: str, place: Place, data: Any) -> bytes:
    return f"event: {name}\nid: {place}\ndata: {json.dumps(data, cls=JSONEncoder)}\n\n".encode()
