"""The bases of all views: strict parameters, rows of a table, and lists in pages. Rows are never counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import QueryDict
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet, ViewSetMixin

from analysis.api import limits
from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.models.keyset import ListPart, Page, page_of

NO_STORE = {"Cache-Control": "no-store"}
"""For a response with a secret."""

Row = TypeVar("Row", bound=Model)


class AnyFormat(APIView):
    """A view with a single format, which ignores Accept: scrapers and probes accept many."""

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:
        return super().perform_content_negotiation(request, force=True)


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


class PageForm(StrictQueryForm):
    limit = WholeNumberField(
        required=False,
        initial=limits.PAGE,
        max_value=limits.PAGE_MAX,
        help_text=f"Number of rows per page, at most {limits.PAGE_MAX}.",
    )
    after = WholeNumberField(required=False, help_text="`id` of a row: the page begins after it.")
    before = WholeNumberField(required=False, help_text="`id` of a row: the page ends before it.")


def place_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"size": parameters["limit"], "after": parameters["after"], "before": parameters["before"]}


def page_response(page: Page[Any], data: Any, request: Request) -> Response:
    links = {"next": _link(request, "after", page.following), "previous": _link(request, "before", page.preceding)}
    return Response({**links, "results": data})


class Keyset(BasePagination):
    """In the order of the view's `ordering`: columns that are never empty, the last of them unique."""

    def paginate_queryset(
        self, queryset: QuerySet[Any, Any] | Sequence[Any], request: Request, view: Any = None
    ) -> list[Any]:
        if not isinstance(queryset, QuerySet):
            raise TypeError("pages begin after a row of a table: a list has none")
        self.request = request
        self.page = page_of([ListPart(queryset, view.ordering)], queryset, **place_of(view.parameters))
        return self.page.rows

    def get_paginated_response(self, data: Any) -> Response:
        return page_response(self.page, data, self.request)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        properties = {"next": link, "previous": link, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}


class Pages(StrictView, ListModelMixin, GenericViewSet[Row]):
    """A list in pages, the newest rows first."""

    pagination_class = Keyset
    query_form = PageForm
    ordering: tuple[str, ...] = ("-id",)
    lookups: Mapping[str, str] = {}
    """What a parameter is compared with, by its name: a row has to match all that are given."""

    def filter_queryset(self, queryset: QuerySet[Row, Any]) -> QuerySet[Row, Any]:
        if self.action != "list":
            return queryset
        values = ((lookup, self.parameters.get(name)) for name, lookup in self.lookups.items())
        return queryset.filter(**{lookup: value for lookup, value in values if value not in (None, "")})


class Resource(RetrieveModelMixin, Pages[Row]):
    """Rows of a table: a list of them, and each by its number."""

    lookup_value_converter = "int"

    @property
    def form(self) -> type[StrictQueryForm]:
        return StrictQueryForm if self.action == "retrieve" else self.query_form

    def created(self, row: Row, **secrets: str) -> Response:
        """Answer a new row, with what no other response contains."""
        headers = {"Location": self.reverse_action("detail", args=[row.pk]), **(NO_STORE if secrets else {})}
        return Response({**self.get_serializer(row).data, **secrets}, status=201, headers=headers)


def _link(request: Request, name: str, row: int | None) -> str | None:
    if row is None:
        return None
    address = request.build_absolute_uri()
    for other in ("after", "before"):
        address = remove_query_param(address, other)
    return str(replace_query_param(address, name, row))
