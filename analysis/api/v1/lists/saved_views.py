"""Saved views of the history: a person's own, and those that others share."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.http import QueryDict
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.base.strict_input import StrictBody, StrictFlag, StrictText, validated
from analysis.api.v1.base.views import Resource
from analysis.http.problem_details import Problem, bad_field
from analysis.http.query_string import without_empty
from analysis.lists.runs.query import parse_query
from analysis.models import SavedView
from analysis.models.annotations import NAME_LENGTH, QUERY_LENGTH
from analysis.permissions import may_manage, signed_in_user
from analysis.runs import services
from analysis.runs.marks.annotations import VIEWS_PER_PERSON


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    """A named view of the history. `query` is the query string of the page /runs/ and of the exports."""

    owner = serializers.CharField(source="owner.username")
    is_own = serializers.SerializerMethodField()

    class Meta:
        model = SavedView
        fields = ("id", "name", "query", "is_shared", "owner", "is_own", "created_at")

    def get_is_own(self, view: SavedView) -> bool:
        return bool(view.owner_id == self.context["request"].user.pk)


class SavedViewBodySerializer(StrictBody):
    """A view to save; one of the same name is replaced."""

    name = StrictText(max_length=NAME_LENGTH)
    query = StrictText(
        max_length=QUERY_LENGTH,
        allow_blank=True,
        help_text="Query string, such as state=finished&sort=-largest. Empty: all runs.",
    )
    is_shared = StrictFlag(default=False, help_text="Whether others may open it, too.")


@extend_schema_view(
    retrieve=extend_schema(description="One saved view: the person's own or a shared one; for GPU managers, any.")
)
class SavedViews(Resource[SavedView]):
    """The person's own views and those that others share, newest first."""

    serializer_class = SavedViewSerializer
    queryset = SavedView.objects.none()

    def get_queryset(self) -> QuerySet[SavedView]:
        views = SavedView.objects.select_related("owner")
        is_any = self.action != "list" and may_manage(self.request.user)
        return views if is_any else views.filter(Q(owner=self.request.user) | Q(is_shared=True))

    @extend_schema(request=SavedViewBodySerializer, responses={201: SavedViewSerializer})
    def create(self, request: Request) -> Response:
        """Save a view, replacing one of the same name."""
        values = validated(SavedViewBodySerializer, request.data)
        wanted = parse_query(without_empty(QueryDict(values["query"].removeprefix("?"))))
        if wanted.problems:
            raise bad_field("query", "; ".join(map(str, wanted.problems)))
        values["query"] = wanted.query()
        view = services.saved_view_set(owner=signed_in_user(request), **values)
        if view is None:
            raise bad_field("name", f"must not be empty, and a person can have at most {VIEWS_PER_PERSON} views")
        return self.created(view)

    @extend_schema(operation_id="saved_views_delete")
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a view of one's own; GPU managers, any. Runs are not affected."""
        if services.saved_view_delete(view_id=pk, by=signed_in_user(request)):
            return Response(status=204)
        if self.get_queryset().filter(pk=pk).exists():
            raise Problem(403, detail="This view is another person's: only its owner and GPU managers may delete it.")
        raise Problem(404, detail="There is no such view.")
