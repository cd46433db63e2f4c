"""Addresses of the classic endpoints and of version 1."""

from django.urls import path

from analysis.api import classic, v1

urlpatterns = [
    path("", classic.index, name="home"),
    path("health", classic.Health.as_view(), name="health"),
    path("models", classic.Models.as_view(), name="models"),
    path("analyze", classic.Analyze.as_view(), name="analyze"),
    path("api/v1/runs/", v1.RunList.as_view(), name="api-runs"),
    path("api/v1/runs/<int:pk>/", v1.RunDetail.as_view(), name="api-run"),
]
