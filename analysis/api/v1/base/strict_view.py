"""The base of all views, with strict parsing of parameters."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from analysis.http.query_string import StrictQueryForm


class StrictView(APIView):
    """A view of the API. Its form checks the query string first; with a typo in a filter nothing must be read.

    Only reading has parameters.
    """

    query_form: type[StrictQueryForm] = StrictQueryForm
    throttle_scope: str | None = None
    query: Any
    """The form, once it is valid."""

    @property
    def form(self) -> type[StrictQueryForm]:
        return self.query_form

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in ("GET", "HEAD"):
            self.query = self.read_query(request.query_params)
        elif hasattr(self, str(request.method).lower()):  # a 405 comes first, whatever else is wrong
            StrictQueryForm.read(request.query_params)

    def read_query(self, query: QueryDict) -> Any:
        """Check the query string. Raises BadQuery, which names every wrong parameter."""
        return self.form.read(query)

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.query.cleaned_data)


class StrictViewSet(ViewSetMixin, StrictView):
    lookup_value_converter = "int"
