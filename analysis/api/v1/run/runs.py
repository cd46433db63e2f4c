"""Runs: list, create, read, annotate, delete, and export of the list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from analysis.api.run_request import run_stored
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.idempotency import REPLAYED, etag_of, is_known, refuse_if_changed, run_once
from analysis.api.v1.base.paging import PageForm, page_response, place_of
from analysis.api.v1.base.serializers import RunDetailSerializer, RunPartsSerializer, RunSerializer, forecast_row
from analysis.api.v1.base.strict_input import StrictBody, StrictFlag, StrictText, body_object, validated
from analysis.api.v1.base.strict_view import StrictView
from analysis.audit.record import record
from analysis.http.problem_details import Problem, bad_field
from analysis.http.query_string import BadQuery, StrictQueryForm
from analysis.lists.runs.export import run_file
from analysis.lists.runs.filters import RunFilter, RunOrderForm
from analysis.models import Measurement, Run, RunKind
from analysis.models.annotations import NAME_LENGTH, TAG_LENGTH
from analysis.permissions import signed_in_user
from analysis.runs import services
from analysis.runs.marks.annotations import NOTE_LENGTH, TAGS_PER_RUN
from analysis.runs.queue.forecast import queue_positions
from analysis.runs.services import BulkResult

ASK_AGAIN_SECONDS = 2
Method = TypeVar("Method", bound=Callable[..., Response])


class RunListForm(RunOrderForm, PageForm):
    """The parameters of the list beside its filters."""


class RunListFilter(RunFilter):
    class Meta(RunFilter.Meta):
        form = RunListForm


class OfKindFilter(RunListFilter):
    kind = None  # type: ignore[assignment]  # so a filter set leaves one of its base out


class RunsView(StrictView):
    filters: type[RunFilter] = RunListFilter

    @property
    def form(self) -> type[StrictQueryForm]:
        return type(self.filters().form)

    def read_query(self, query: QueryDict) -> RunFilter:
        return requested_runs(query, self.filters)


class OfKindList(RunsView):
    """Runs of one kind: the same resource as runs, filtered and sorted like them."""

    kind: RunKind
    filters = OfKindFilter
    throttle_scope = "create"

    def read_query(self, query: QueryDict) -> RunFilter:
        super().read_query(query)
        of_kind = query.copy()
        of_kind["kind"] = self.kind.value
        return requested_runs(of_kind, RunListFilter)

    def get(self, request: Request) -> Response:
        return page_answered(self.query, request)


def list_described(kind: RunKind) -> Any:
    """Describe the list of the runs of this kind: a decorator for its view."""
    page = openapi_parameters.page_of(f"{kind.capitalize()}Page", RunSerializer)
    description = f"List runs of kind {kind}, filtered and sorted like runs."
    return extend_schema_view(get=extend_schema(responses=page, description=description))


def stores_run(
    body: str | None = None, *, problems: tuple[int, ...] = (), **options: Any
) -> Callable[[Method], Method]:
    """Describe an address that stores a run, with the component of its body: a decorator for the method."""
    refusals = openapi_parameters.problems(409, 422, *problems)
    return extend_schema(
        parameters=openapi_parameters.ACCEPTED,
        request=body and openapi_parameters.body(body),
        responses={202: RunDetailSerializer, **refusals},
        **options,
    )


class RunList(RunsView):
    throttle_scope = "create"

    @extend_schema(responses=openapi_parameters.page_of("RunPage", RunSerializer))
    def get(self, request: Request) -> Response:
        """List runs, filtered and sorted as on the page /runs/. There is no total count; `next` is null at the end."""
        return page_answered(self.query, request)

    @stores_run("RunRequestRequest")
    def post(self, request: Request) -> Response:
        """Store and queue a run: a measurement or an estimate. Poll its Location until it is over."""
        body = body_object(request)
        return started(request, body, lambda: run_stored(body, signed_in_user(request)))


class RunExport(RunsView):
    """All runs of a list as a file, of any length; written while the rows are read."""

    file_format = ""
    filters = RunFilter
    read_throttle_scope = "export"

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:
        return super().perform_content_negotiation(request, force=True)

    def get(self, request: Request) -> StreamingHttpResponse:
        after = {"form": self.file_format, "query": self.query.filter_query}
        record("run.export", target=("run", ""), after=after)
        return run_file(self.file_format, (part.rows for part in self.query.parts))


@extend_schema_view(
    get=extend_schema(
        responses={(200, "text/csv"): str},
        description="All runs of a list as CSV: a header, then a line for each run.",
    )
)
class RunExportCsv(RunExport):
    file_format = "csv"


@extend_schema_view(
    get=extend_schema(
        responses={(200, "application/json"): openapi_parameters.ANY_OBJECTS},
        description="All runs of a list as one JSON array.",
    )
)
class RunExportJson(RunExport):
    file_format = "json"


class RunChangeSerializer(StrictBody):
    """Annotations of a run. A field that is left out stays unchanged."""

    name = StrictText(max_length=NAME_LENGTH, allow_blank=True, required=False)
    note = StrictText(lines=True, max_length=NOTE_LENGTH, allow_blank=True, required=False)
    tags = serializers.ListField(child=StrictText(max_length=TAG_LENGTH), max_length=TAGS_PER_RUN, required=False)
    is_baseline = StrictFlag(
        required=False, help_text="Pinned: other runs are compared with it, and it is never deleted automatically."
    )


class RunDetail(StrictView):
    @extend_schema(
        parameters=[openapi_parameters.IF_NONE_MATCH, openapi_parameters.ETAG, openapi_parameters.RETRY_AFTER],
        responses={
            200: RunDetailSerializer,
            304: OpenApiResponse(description="The run has not changed (If-None-Match)."),
        },
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return one run with its spec, result, attempts and the probes of the last attempt."""
        run = run_or_404(pk)
        answer = RunAnswer(run)
        if is_known(request, answer.etag):
            return Response(status=304, headers=_headers(run, answer.etag))
        return answer.response()

    @extend_schema(
        parameters=[openapi_parameters.IF_MATCH, openapi_parameters.ETAG],
        request=RunChangeSerializer,
        responses={200: RunDetailSerializer, **openapi_parameters.problems(409, 412)},
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change name, note, tags or baseline flag of one's own run; GPU managers, of any run."""
        changes = validated(RunChangeSerializer, body_object(request))
        with transaction.atomic():
            _lock(request, pk)
            _change(run_or_404(pk), changes, request.user)
        return RunAnswer(run_or_404(pk)).response()

    @extend_schema(
        parameters=[openapi_parameters.IF_MATCH], responses={204: None, **openapi_parameters.problems(409, 412)}
    )
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a run. It can be restored for 30 days. A run that is not over, or a baseline, cannot be deleted."""
        with transaction.atomic():
            _lock(request, pk)
            run_or_404(pk)
            refuse_unless_done(services.runs_delete(run_ids={pk}, by=signed_in_user(request)))
        return Response(status=204)


def requested_runs(query: QueryDict, filters: type[RunFilter]) -> RunFilter:
    """Read a list's query string as the page does. Raises BadQuery."""
    wanted = filters(query, Run.objects.all())
    if wanted.problems:
        raise BadQuery(*wanted.problems)
    return wanted


def page_answered(wanted: RunFilter, request: Request) -> Response:
    """Return one page of these runs; waiting ones with their position in the queue."""
    page = wanted.page(**place_of(wanted.form.cleaned_data))
    rows = RunSerializer(page.rows, many=True, context={"queue_positions": queue_positions(page.rows)}).data
    return page_response(page, rows, request)


def run_or_404(pk: int, runs: Any = Run.objects) -> Run:
    """Read the row without its result, which is large."""
    run: Run = get_object_or_404(runs.with_places().defer("result"), pk=pk)
    return run


def started(request: Request, body: dict[str, Any], make: Callable[[], Run]) -> Response:
    """Store the run that `make` creates, once, and return the response for it."""
    run, is_replay = run_once(request, body, make)
    return accepted(run, request, is_replay=is_replay)


def accepted(run: Run, request: Request, *, is_replay: bool = False, status: int = 202) -> Response:
    """Return the response for a stored or changed run: its state, its Location, and the interval for polling."""
    headers = {"Location": reverse("api-run", args=[run.pk], request=request)}
    if is_replay:
        headers[REPLAYED] = "true"
    return RunAnswer(run).response(status, headers)


def refuse_unless_done(answer: BulkResult) -> None:
    """Raise a problem if a service refused: 403 for another person's run, 409 where its state forbids the action."""
    if answer.not_allowed:
        raise not_yours()
    if answer.not_possible:
        raise Problem(409, detail=f"Not done: {answer.reason}.", code="state")


def not_yours() -> Problem:
    return Problem(403, detail="Only the person who started this run, or a GPU manager, may do that.", code="not_yours")


def summary_of(run: Run) -> dict[str, Any]:
    """Write a run that was read with its places and tags, without what the queue forecasts for it."""
    return dict(RunSerializer(run, context={"queue_positions": {}}).data)


class RunAnswer:
    """A run as one response shows it; its columns are read once for the body and the ETag."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.summary = summary_of(run)

    @cached_property
    def etag(self) -> str:
        """The ETag without the forecast, which time changes; the number of probes is enough, as rows are only added."""
        run = self.run
        probes = Measurement.objects.of(run).order_by().count() if run.attempt else 0
        return etag_of(self.summary, run.note, run.error_message, probes)

    def response(self, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        run, turn = self.run, queue_positions([self.run]).get(self.run.pk)
        body = {**self.summary, **forecast_row(turn), **RunPartsSerializer(run).data}
        return Response(body, status=status, headers={**_headers(run, self.etag), **(headers or {})})


def _headers(run: Run, etag: str) -> dict[str, str]:
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    return headers if run.is_over else {**headers, "Retry-After": str(ASK_AGAIN_SECONDS)}


def _lock(request: Request, pk: int) -> None:
    """Lock the run until the transaction ends. Refused where it changed since the client read it."""
    list(Run.objects.select_for_update().filter(pk=pk).values_list("pk"))
    if "If-Match" in request.headers:
        refuse_if_changed(request, RunAnswer(run_or_404(pk)).etag)


def _change(run: Run, values: dict[str, Any], user: Any) -> None:
    if not Run.objects.changeable_by(user).filter(pk=run.pk).exists():
        raise not_yours()
    written = {name: values.get(name, getattr(run, name)) for name in ("name", "note")}
    tags = values["tags"] if "tags" in values else [tag.name for tag in run.tags.all()]
    if values.keys() & {"name", "note", "tags"}:
        try:
            refuse_unless_done(services.run_annotate(run_id=run.pk, by=user, tags=tags, **written))
        except ValidationError as error:
            raise bad_field("tags", " ".join(error.messages)) from error
    if "is_baseline" in values:
        refuse_unless_done(services.runs_set_baseline(run_ids={run.pk}, by=user, is_baseline=values["is_baseline"]))
