"""Version 1 of the API: stored runs, for whoever is signed in."""

from __future__ import annotations

from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from analysis import services
from analysis.api.asked import json_object, spec_and_device
from analysis.api.serializers import RunDetailSerializer, RunSerializer
from analysis.models import Run


class NewestFirst(CursorPagination):
    """Pages that stay put while new runs arrive; `id` breaks ties."""

    ordering = ("-created_at", "-id")
    page_size = 50


class RunList(ListAPIView[Run]):
    """`GET` lists runs; `POST` stores one: the body is a RunSpec."""

    queryset = Run.objects.for_history()
    serializer_class = RunSerializer
    pagination_class = NewestFirst

    def post(self, request: Request) -> Response:
        spec, device = spec_and_device(json_object(request))
        run = services.run_create(spec=spec, device=device, requested_by=request.user)
        location = reverse("api-run", args=[run.pk], request=request)
        return Response(RunDetailSerializer(run).data, status=202, headers={"Location": location, "Retry-After": "2"})


class RunDetail(RetrieveAPIView[Run]):
    """One run with everything that is known of it."""

    queryset = Run.objects.select_related("device")
    serializer_class = RunDetailSerializer
