"""The base of all views, with strict parsing of parameters."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.views import APIView

from analysis.http.problem_details import bad_parameter

_NUL = "\x00"


class StrictView(APIView):
    """A view of the API. Unknown parameters are a 400: with a typo in a filter the response would be unfiltered.

    Only reading has parameters. Those of pagination are added automatically.
    """

    query_parameters: tuple[str, ...] = ()
    repeatable_parameters: tuple[str, ...] = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not hasattr(self, str(request.method).lower()):
            return  # a 405 comes first, whatever else is wrong
        known = self._parameters() if request.method in ("GET", "HEAD") else ()
        for name, values in request.query_params.lists():
            if name not in known:
                raise bad_parameter(name[:80], f"there is no such parameter here; {_offer(known)}", "unknown")
            if len(values) > 1 and name not in self.repeatable_parameters:
                raise bad_parameter(name, f"given {len(values)} times; it takes one value", "repeated")
            if "" in values:  # an unset variable in a script must not read everything
                raise bad_parameter(name, "is empty; give a value, or leave it out", "blank")
            if any(_NUL in value for value in values):
                raise bad_parameter(name, "must not contain a NUL character")

    def _parameters(self) -> tuple[str, ...]:
        paged = getattr(getattr(self, "paginator", None), "query_parameters", ())
        return (*self.query_parameters, *paged)


def _offer(known: tuple[str, ...]) -> str:
    return f"known parameters: {', '.join(known)}" if known else "it has no parameters"
