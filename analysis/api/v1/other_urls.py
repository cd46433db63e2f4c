"""URLs of version 1 except those of runs."""

from django.urls import path

from analysis.api.v1 import (
    audit,
    catalog,
    commands,
    compare,
    devices,
    estimates,
    fits,
    matrix,
    recommendation,
    saved_views,
    tokens,
    trends,
)

urlpatterns = [
    path("models/", catalog.ModelList.as_view(), name="api-models"),
    path("settings/", catalog.SettingsSchema.as_view(), name="api-settings"),
    path("gpus/", catalog.GpuList.as_view(), name="api-gpus"),
    path("devices/", devices.DeviceList.as_view(), name="api-devices"),
    path("devices/<int:pk>/", devices.DeviceDetail.as_view(), name="api-device"),
    path("estimates/", estimates.EstimateList.as_view(), name="api-estimates"),
    path("recommendation/", recommendation.Recommendation.as_view(), name="api-recommendation"),
    path("commands/", commands.Commands.as_view(), name="api-commands"),
    path("commands/<str:name>/runs/", commands.CommandRuns.as_view(), name="api-command-runs"),
    path("fits/", fits.Fits.as_view(), name="api-fits"),
    path("compare/", compare.Compare.as_view(), name="api-compare"),
    path("matrix/", matrix.Matrix.as_view(), name="api-matrix"),
    path("trends/", trends.Trend.as_view(), name="api-trends"),
    path("trends/acknowledgements/", trends.TrendNotes.as_view(), name="api-trend-acknowledgements"),
    path("saved-views/", saved_views.SavedViewList.as_view(), name="api-saved-views"),
    path("saved-views/<int:pk>/", saved_views.SavedViewDetail.as_view(), name="api-saved-view"),
    path("tokens/", tokens.TokenList.as_view(), name="api-tokens"),
    path("tokens/<int:pk>/", tokens.TokenDetail.as_view(), name="api-token"),
    path("audit/", audit.AuditList.as_view(), name="api-audit"),
]
