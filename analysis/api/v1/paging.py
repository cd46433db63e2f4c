"""Lists in pages that begin after a row, not at a number: they stay put while other rows arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param

from analysis.http.problem_details import bad_parameter
from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.pages.history.keyset import Part

LIMIT = 50
LIMIT_MAX = 500


class PageForm(StrictQueryForm):
    """The parameters of a list in pages."""

    limit = WholeNumberField(
        required=False, initial=LIMIT, max_value=LIMIT_MAX, help_text=f"Rows per page, at most {LIMIT_MAX}."
    )
    after = WholeNumberField(required=False, help_text="The page that begins after this row: its `id`.")
    before = WholeNumberField(required=False, help_text="The page that ends before this row: its `id`.")


class Pages(BasePagination):
    """The form of every list, and how the page before and the page after are named. Rows are never counted."""

    request: Request
    following: int | None = None
    preceding: int | None = None

    def get_paginated_response(self, data: Any) -> Response:
        links = {"next": self._link("after", self.following), "previous": self._link("before", self.preceding)}
        return Response({**links, "results": data})

    def _link(self, name: str, row: int | None) -> str | None:
        if row is None:
            return None
        address = self.request.build_absolute_uri()
        for other in ("after", "before"):
            address = remove_query_param(address, other)
        return replace_query_param(address, name, row)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        properties = {"next": link, "previous": link, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}


class Keyset(Pages):
    """In the order of the view's `ordering`: columns that are never empty, the last of them unique."""

    def paginate_queryset(
        self, queryset: QuerySet[Any, Any] | Sequence[Any], request: Request, view: Any = None
    ) -> list[Any]:
        if not isinstance(queryset, QuerySet):
            raise TypeError("pages begin after a row of a table: a list has none")
        self.request, size = request, view.parameters["limit"]
        keys = tuple(getattr(view, "ordering", ("-id",)))
        after, before = view.parameters["after"], view.parameters["before"]
        part = Part(queryset.order_by(*keys), keys)
        if before is not None:
            rows = list(part.reversed().after(self._values(queryset, keys, "before", before))[: size + 1])
            shown = rows[:size][::-1]
            has_before, has_after = len(rows) > size, bool(shown)
        else:
            wanted = part.runs if after is None else part.after(self._values(queryset, keys, "after", after))
            rows = list(wanted[: size + 1])
            shown = rows[:size]
            has_before, has_after = after is not None and bool(shown), len(rows) > size
        self.following = shown[-1].pk if has_after else None
        self.preceding = shown[0].pk if has_before else None
        return shown

    def _values(self, queryset: QuerySet[Any], keys: tuple[str, ...], name: str, row: int) -> dict[str, Any]:
        """Where that row stands, also when the filters no longer let it through."""
        paths = {"id", *(key.removeprefix("-") for key in keys)}
        rows = queryset.model._default_manager.filter(pk=row)
        values: dict[str, Any] | None = rows.values(*paths).first()
        if values is None:
            raise bad_parameter(name, f"row {row} is not there any more; begin at the first page", "gone")
        return values
