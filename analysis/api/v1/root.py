"""`GET /api/v1/`: the index of the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analysis.api.v1.base.strict_view import StrictView
from engine import __version__

VERSION = "1"


class RootSerializer(serializers.Serializer[Any]):
    """The index of version 1."""

    name = serializers.CharField()
    version = serializers.CharField(help_text="Version of the API. It changes only with an incompatible change.")
    software_version = serializers.CharField(help_text="Version of MemoryMark that this server runs.")
    links = serializers.DictField(child=serializers.URLField(), help_text="URLs of the lists, by name.")


class Root(StrictView):
    """The index of version 1."""

    names: tuple[str, ...] = ()

    @extend_schema(tags=["index"], operation_id="index", responses=RootSerializer)
    def get(self, request: Request) -> Response:
        """Return the URLs of all lists."""
        links = {name.rstrip("/"): request.build_absolute_uri(name) for name in self.names}
        return Response({"name": "MemoryMark", "version": VERSION, "software_version": __version__, "links": links})
