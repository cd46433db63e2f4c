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
from analysis.api.asked import json_object, submission
from analysis.api.serializers import RunDetailSerializer, RunSerializer
from analysis.forecast import turns
from analysis.models import Run


class NewestFirst(CursorPagination):
    """Pages that stay put while new runs arrive; `id` breaks ties."""

    ordering = ("-created_at", "-id")
    page_size = 50


class RunList(ListAPIView[Run]):
    """`GET` lists runs; `POST` stores one: the body is a RunSpec, and its place in the queue."""

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
        run = services.run_create(**submission(json_object(request), request.user))
        location = reverse("api-run", args=[run.pk], request=request)
        return Response(
            RunDetailSerializer(run, context={"turns": turns([run])}).data,
            status=202,
            headers={"Location": location, "Retry-After": "2"},
        )


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
