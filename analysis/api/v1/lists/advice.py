"""The advice for a run: exact global batch, learning rate, code to paste."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import msgspec
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.result_schema import ORIGIN
from analysis.api.v1.base.views import StrictView
from analysis.api.v1.run.runs import run_or_404
from analysis.http.problem_details import Problem, bad_parameter
from analysis.presentation.advice_query import AdviceForm, advice_of
from analysis.presentation.origin import origin_members
from engine.advice.document import Advice
from engine.errors import SpecError

_PARAMETERS = {"global_batch_size": "global_batch", "devices": "devices", "gpu": "gpu"}


def advice_components() -> dict[str, Any]:
    """Return the components of the OpenAPI document that describe an advice, read off its classes."""
    _, found = msgspec.json.schema_components([Advice], ref_template="#/components/schemas/{name}")
    found["Advice"]["properties"] |= ORIGIN
    for schema in found.values():
        schema |= {"required": list(schema["properties"]), "description": cleandoc(schema["description"])}
        del schema["title"]
    return found


class RunAdvice(StrictView):
    query_form = AdviceForm

    @extend_schema(responses={200: {"$ref": "#/components/schemas/Advice"}})
    def get(self, request: Request, pk: int) -> Response:
        """Return pairs that keep a global batch exactly, the rules for the learning rate, and code to paste.

        404 where the run has no result, or no size that keeps the reserve.
        """
        run = run_or_404(pk)
        if not run.result:
            raise Problem(404, detail=f"Run {pk} is {run.state}: advice needs its result.", code="no_advice")
        try:
            advice = advice_of(run, self.query)
        except SpecError as error:
            if error.field in _PARAMETERS:
                raise bad_parameter(_PARAMETERS[error.field], str(error).partition(": ")[2]) from error
            raise Problem(404, detail=f"Run {pk} is {run.state}: {error}.", code="no_advice") from error
        return Response({**advice.to_dict(), **origin_members(run)})
