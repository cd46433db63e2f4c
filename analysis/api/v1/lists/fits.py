"""Whether a batch size fits, for CI jobs: answered from earlier measurements, or measured now."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from analysis.api.kinds.measurement import Measurement
from analysis.api.v1.base import openapi_parameters
from analysis.api.v1.base.serializers import OriginSerializer
from analysis.api.v1.base.strict_input import body_object
from analysis.api.v1.base.strict_view import StrictView
from analysis.api.v1.lists.recommendation import devices_of_placement
from analysis.api.v1.run.runs import ASK_AGAIN_SECONDS
from analysis.api.waiting import waited_for
from analysis.http.problem_details import bad_field
from analysis.models import Run, State
from analysis.permissions import signed_in_user
from analysis.presentation.origin import origin_members
from analysis.runs.earlier.fits import DERIVED, MEASURED, FitAnswer, fit_known, fit_of, fit_under_way
from analysis.runs.services import run_create
from engine.errors import SpecError

_CHECKED, _GIVEN = "check_batch_size", "batch_size"
_PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="respond-async: answer without waiting for a run."
)


class FitSerializer(OriginSerializer):
    """Whether this batch size trains with these settings, and the run that shows it."""

    batch_size = serializers.IntegerField()
    fits = serializers.BooleanField(
        allow_null=True, help_text="null: unknown, because the run is not over, or gave no result (see `state`)."
    )
    basis = serializers.ChoiceField(
        [MEASURED, DERIVED],
        allow_null=True,
        help_text="measured: this size was run. derived: a larger one trained, or a smaller one did not.",
    )
    run = serializers.IntegerField()
    state = serializers.CharField()
    url = serializers.URLField(help_text="URL of the run.")
    device_name = serializers.CharField()
    limit_bytes = serializers.IntegerField(allow_null=True, help_text="Memory that the run may use.")
    error_message = serializers.CharField(help_text="Why the run gave no result, if it failed.")


class Fits(StrictView):
    """Whether a batch size fits."""

    throttle_scope = "create"

    @extend_schema(
        operation_id="fits",
        parameters=[_PREFER, openapi_parameters.LOCATION, openapi_parameters.RETRY_AFTER],
        request=openapi_parameters.body("FitsRequestRequest"),
        responses={200: FitSerializer, 202: FitSerializer},
    )
    def post(self, request: Request) -> Response:
        """Answer whether `batch_size` trains with these settings; 202 while its run is not over.

        Earlier runs of the same spec answer it at once. Otherwise this size is run for many steps in a fresh process,
        and the request waits like POST /analyze. A repeated request joins the unfinished run.
        """
        values = body_object(request)
        size = values.pop(_GIVEN, None)
        if not isinstance(size, int) or isinstance(size, bool):
            raise bad_field(_GIVEN, "is required: the whole number of samples that is to fit", "required")
        for name in (_CHECKED, "kind", "gpu"):
            if name in values:
                raise bad_field(name, f"is not allowed here; use {_GIVEN}", "unknown")
        user = signed_in_user(request)
        try:
            arguments = Measurement().submission({**values, _CHECKED: size}, user)
        except SpecError as error:
            if error.field != _CHECKED:
                raise
            raise bad_field(_GIVEN, str(error).removeprefix(f"{_CHECKED}: "), error.code) from error
        known = fit_known(arguments["spec"], devices_of_placement(arguments["place"], user))
        if known is not None:
            return _answer(known.run, size, known, request)
        run = waited_for(fit_under_way(arguments["spec"], user) or run_create(**arguments), request)
        return _answer(run, size, fit_of(run, size) if run.state == State.FINISHED else None, request)


def _answer(run: Run, size: int, known: FitAnswer | None, request: Request) -> Response:
    url = reverse("api-run", args=[run.pk], request=request)
    body = {
        "batch_size": size,
        "fits": None if known is None else known.fits,
        "basis": None if known is None else known.basis,
        "run": run.pk,
        **origin_members(run),
        "state": run.state,
        "url": url,
        "device_name": run.device_name,
        "limit_bytes": run.limit_bytes,
        "error_message": run.error_message,
    }
    if run.is_over:
        return Response(FitSerializer(body).data)
    headers = {"Location": url, "Retry-After": str(ASK_AGAIN_SECONDS)}
    return Response(FitSerializer(body).data, status=202, headers=headers)
