"""The classic endpoints: a published contract that must not change. `data.py` creates their responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.vary import vary_on_headers
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.accounts.middleware import require_role
from analysis.accounts.quotas import QuotaExceededError
from analysis.api import limits
from analysis.api.classic.data import (
    AcceptedSerializer,
    AnalyzeBodySerializer,
    AnalyzeSerializer,
    ClassicErrorSerializer,
    ClassicModelsSerializer,
    HealthSerializer,
    analysis_data,
    health_data,
    models_data,
)
from analysis.api.kinds.measurement import Measurement
from analysis.api.permissions import MayAnalyze
from analysis.api.v1.base.views import AnyFormat
from analysis.api.waiting import waited_for
from analysis.http.errors import BadRequest, error_body, wants_json
from analysis.http.strict_json import BadJsonError, strict_json
from analysis.models import TERMINAL_STATES, Device, Run, State
from analysis.runs import services
from engine.errors import SpecError
from engine.settings.catalog import WORKLOADS, workload_ids
from engine.settings.spec import RunSpec
from engine.settings.spec_checks import unknown_key

JSON = "application/json"
_KEYS = ("model_name", *(name for name in RunSpec.__dataclass_fields__ if name != "model"), "device_class")
_PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="respond-async: answer without waiting for the run."
)
_ERRORS = dict.fromkeys((400, 401, 403, 406, 413, 415, 429, 500, 503), ClassicErrorSerializer)
_INDEX = {
    "name": "MemoryMark",
    "description": "Measures the largest and the best batch size of a model on a device",
    "endpoints": {
        "GET /health": "state of this server and its first device",
        "GET /models": "models that can be analysed",
        "POST /analyze": '{"model_name": "bert"}: run an analysis and wait for it',
        "GET /api/v1/runs/": "stored runs (login)",
        "POST /api/v1/runs/": '{"model": "bert"}: store a run (login)',
    },
}


def index_or(page: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Answer `/`: the page for a browser, which accepts HTML; the API's index for any other client."""

    @csrf_exempt  # a POST changes nothing here, and is refused in our own form
    @login_not_required
    @vary_on_headers("Accept")
    def index(request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            body = error_body(f'Method "{request.method}" not allowed.')
            return JsonResponse(body, status=405, headers={"Allow": "GET, HEAD"})
        return JsonResponse(_INDEX) if wants_json(request) else require_role(page)(request)

    return index


class Open(AnyFormat):
    """A view that everybody may read, always answered in JSON."""

    authentication_classes = ()
    permission_classes = (AllowAny,)


class Health(Open):
    """`GET /health`. It also answers before any device is registered."""

    @extend_schema(responses={200: HealthSerializer, 503: ClassicErrorSerializer})
    def get(self, request: Request) -> Response:
        """Return the state of this server and of its first device."""
        device = Device.objects.enabled().best_first().first()
        return Response(health_data(device, timezone.now()))


class Models(Open):
    @extend_schema(responses=ClassicModelsSerializer)
    def get(self, request: Request) -> Response:
        """List the models that can be analysed."""
        return Response({"models": models_data()})


class Analyze(APIView):
    """`POST /analyze`: store a run, wait for it, and answer in the format of the contract."""

    permission_classes = (MayAnalyze,)
    throttle_scope = "create"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the type of the body first, to name it as the reason: a program on this machine needs no login."""
        content_type = request.content_type.partition(";")[0].strip().lower()
        if request.method == "POST" and content_type not in ("", JSON):
            detail = f"The body must be JSON, not {content_type[:80]}: send it with the header Content-Type: {JSON}"
            raise UnsupportedMediaType(content_type, detail)
        super().initial(request, *args, **kwargs)

    @extend_schema(
        parameters=[_PREFER],
        request=AnalyzeBodySerializer,
        responses={200: AnalyzeSerializer, 202: AcceptedSerializer, **_ERRORS},
    )
    def post(self, request: Request) -> Response:
        """Store a run and wait for it. 202 when the run takes too long, or too many requests wait."""
        values = _spec_keys(_body_object(request))
        if not request.user.is_authenticated:
            values = _of_nobody(values)
        run = services.run_create(**Measurement().submission(values, request.user))
        run = waited_for(run, request)
        if run.state == State.FINISHED and run.result is not None:
            return Response({"status": "success", "data": analysis_data(run.result, run_id=run.pk)})
        if run.is_over:
            message = run.error_message or f"The run was {run.get_state_display().lower()}"
            return Response(error_body(f"Analysis failed: {message}"), status=500)
        url = request.build_absolute_uri(run.get_absolute_url())
        return Response({"status": "accepted", "run_id": run.pk, "url": url}, status=202, headers={"Location": url})


def _body_object(request: HttpRequest) -> dict[str, Any]:
    if not request.body.strip():
        raise BadRequest("Request body is required")
    try:
        body = strict_json(request.body)
    except BadJsonError as exc:
        raise BadRequest("Request body must be valid JSON") from exc
    if not isinstance(body, dict):
        raise BadRequest("Request body must be a JSON object")
    return body


def _of_nobody(values: dict[str, Any]) -> dict[str, Any]:
    """Keep a run that belongs to nobody short; refuse it while another is not over, so that it delays no person."""
    unfinished = Run.objects.on_devices().exclude(state__in=TERMINAL_STATES).order_by("pk").first()
    if unfinished:
        message = (
            f"Without a login a run starts only when no other waits or runs; run {unfinished.pk} is not over. Log in."
        )
        raise QuotaExceededError("runs_waiting_max", message, frees_at=None, retry_after_seconds=60)
    seconds = values.setdefault("time_budget_seconds", limits.NOBODYS_SECONDS)
    if isinstance(seconds, int | float) and seconds > limits.NOBODYS_SECONDS:
        raise SpecError("time_budget_seconds", f"at most {limits.NOBODYS_SECONDS} without a login")
    return values


def _spec_keys(body: dict[str, Any]) -> dict[str, Any]:
    name = body.get("model_name")
    if name is None or name == "":
        raise BadRequest("model_name is required")
    if not isinstance(name, str) or name not in WORKLOADS:
        raise BadRequest(f"Invalid model_name. Must be one of: {', '.join(workload_ids())}")
    for key in body:
        if key not in _KEYS:
            raise BadRequest(f"{key[:80]}: {unknown_key(key, _KEYS)}")
    return {"model": name, **{key: value for key, value in body.items() if key != "model_name"}}
