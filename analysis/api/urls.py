"""URLs of the classic endpoints and of version 1."""

from django.urls import include, path

from analysis.api import openapi
from analysis.api.classic import views as classic

urlpatterns = [
    path("health", classic.Health.as_view(), name="health"),
    path("models", classic.Models.as_view(), name="models"),
    path("analyze", classic.Analyze.as_view(), name="analyze"),
    path("api/v1/", include("analysis.api.v1.urls")),
    path("api/schema/", openapi.SchemaFile.as_view(), name="api-schema"),
    path("api/docs/", openapi.docs, name="api-docs"),
]
