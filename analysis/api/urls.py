"""URLs of the API: the classic endpoints, version 1 and its description."""

from django.urls import URLPattern, URLResolver, include, path
from rest_framework.routers import SimpleRouter

from analysis.api import openapi
from analysis.api.classic import views as classic
from analysis.api.v1 import catalog, devices
from analysis.api.v1.lists import compare, matrix, recommendation, saved_views, trends
from analysis.api.v1.people import audit, subscriptions, tokens
from analysis.api.v1.run import of_kind, reports, run_actions, run_parts, run_wait, runs, share_links

router = SimpleRouter(use_regex_path=False)
router.register("runs", run_actions.RunActions, "api-run-action")
router.register("runs", run_parts.RunParts, "api-run-part")
router.register("runs", run_wait.RunWaits, "api-run-wait")
router.register("subscriptions", subscriptions.Subscriptions, "api-subscription")
router.register("devices", devices.Devices, "api-device")
router.register("saved-views", saved_views.SavedViews, "api-saved-view")
router.register("share-links", share_links.ShareLinks, "api-share-link")
router.register("tokens", tokens.Tokens, "api-token")
router.register("audit", audit.AuditLog, "api-audit")

_all: list[URLPattern | URLResolver] = [
    path("runs/", runs.RunList.as_view()),
    path("runs/export.csv", runs.RunExportCsv.as_view()),
    path("runs/export.json", runs.RunExportJson.as_view()),
    path("runs/<int:pk>/", runs.RunDetail.as_view(), name="api-run"),
    path("runs/<int:pk>/advice/", recommendation.RunAdvice.as_view()),
    *router.urls,
    path("models/", catalog.ModelList.as_view()),
    path("settings/", catalog.SettingsSchema.as_view()),
    path("gpus/", catalog.GpuList.as_view()),
    path("commands/", of_kind.Commands.as_view()),
    path("commands/<str:name>/runs/", of_kind.CommandRuns.as_view()),
    path("estimates/", of_kind.EstimateList.as_view()),
    path("validations/", of_kind.ValidationList.as_view()),
    path("recommendation/", recommendation.Recommendation.as_view()),
    path("fits/", recommendation.Fits.as_view()),
    path("compare/", compare.Compare.as_view()),
    path("matrix/", matrix.Matrix.as_view()),
    path("trends/", trends.Trend.as_view()),
    path("trends/acknowledgements/", trends.TrendNotes.as_view()),
    path("reports/", reports.Reports.as_view()),
    path("reports/<str:run_key>/events/", reports.ReportEvents.as_view()),
    path("results/", reports.Results.as_view()),
    path("results/known/", reports.KnownResults.as_view()),
]
# the lists: URLs without an id
_names = tuple(str(each.pattern) for each in _all if "<" not in str(each.pattern) and str(each.pattern).endswith("/"))

urlpatterns = [
    path("health", classic.Health.as_view(), name="health"),
    path("models", classic.Models.as_view(), name="models"),
    path("analyze", classic.Analyze.as_view(), name="analyze"),
    path("api/v1/", include([path("", catalog.Root.as_view(names=_names)), *_all])),
    path("api/schema/", openapi.SchemaFile.as_view(), name="api-schema"),
    path("api/docs/", openapi.docs, name="api-docs"),
]
