"""Version 1 of the API: stored runs, for whoever is signed in."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from analysis import services
from analysis.api.asked import asks_for_estimate, estimate_submission, json_object, submission
from analysis.api.serializers import RunDetailSerializer, RunSerializer
from analysis.forecast import turns
from analysis.models import Run


class NewestFirst(CursorPagination):
    """Pages that stay put while new runs arrive; `id` breaks ties."""

    ordering = ("-created_at", "-id")
    page_size = 50


class RunList(ListAPIView[Run]):
    """`GET` lists runs; `POST` stores one: a RunSpec, its place in the queue or, of an estimate, its GPU."""

    queryset = Run.objects.for_history()
    serializer_class = RunSerializer
    pagination_class = NewestFirst

    def paginate_queryset(self, queryset: QuerySet[Run]) -> list[Run] | None:
        page = super().paginate_queryset(queryset)
        self.turns = turns(page or [])
        return page

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "turns": self.turns}

    def post(self, request: Request) -> Response:
        run = _stored(json_object(request), request.user)
        location = reverse("api-run", args=[run.pk], request=request)
        return Response(
            RunDetailSerializer(run, context={"turns": turns([run])}).data,
            status=202,
            headers={"Location": location, "Retry-After": "2"},
        )


def _stored(body: dict[str, Any], user: Any) -> Run:
    is_estimate = asks_for_estimate(body)
    asked = {name: value for name, value in body.items() if name != "kind"}
    if is_estimate:
        return services.estimate_create(**estimate_submission(asked, user))
    return services.run_create(**submission(asked, user))


class RunDetail(RetrieveAPIView[Run]):
    """One run with everything that is known of it."""

    queryset = Run.objects.with_places()
    serializer_class = RunDetailSerializer

    def get_object(self) -> Run:
        run = super().get_object()
        self.turns = turns([run])
        return run

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "turns": self.turns}
