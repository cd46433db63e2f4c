"""Describes a view in the OpenAPI document by its address and its query form, so that the view need not repeat them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema

from analysis.api.v1.base.openapi_parameters import parameters_of
from analysis.api.v1.base.strict_view import StrictView

_TAGS = {
    **dict.fromkeys(("models", "settings", "gpus"), "catalogue"),
    **dict.fromkeys(("compare", "matrix", "trends"), "comparison"),
    **{"devices": "fleet", "fits": "recommendation", "results": "reports", "subscriptions": "notifications"},
}
"""Tags that are not the first part of the address."""
_ON_LIST = {"GET": "list", "POST": "create"}
_ON_ROW = {"GET": "retrieve", "PATCH": "update", "DELETE": "delete"}


class ViewSchema(AutoSchema):
    """Names an operation `runs_list`, `runs_retrieve` or `runs_cancel`; a decorator may say otherwise."""

    def get_tags(self) -> list[str]:
        first = self._tokenize_path()[0]
        return [_TAGS.get(first, first.replace("-", " "))]

    def get_operation_id(self) -> str:
        names = [part.replace("-", "_").replace(".", "_") for part in self._tokenize_path()]
        actions = _ON_ROW if self.path.endswith("}/") else _ON_LIST
        return "_".join((names[0], names[-1] if len(names) > 1 else actions[self.method]))

    def get_override_parameters(self) -> list[Any]:
        return parameters_of(self.view.form) if self.method == "GET" and isinstance(self.view, StrictView) else []
