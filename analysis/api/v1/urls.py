"""URLs of version 1."""

from django.urls import path

from analysis.api.v1 import other_urls, root
from analysis.api.v1.lists import advice
from analysis.api.v1.run import changes, run_actions, run_parts, run_wait, runs

_runs = [
    path("runs/", runs.RunList.as_view(), name="api-runs"),
    path("runs/export.csv", runs.RunExportCsv.as_view(), name="api-runs-csv"),
    path("runs/export.json", runs.RunExportJson.as_view(), name="api-runs-json"),
    path("runs/<int:pk>/", runs.RunDetail.as_view(), name="api-run"),
    path("runs/<int:pk>/cancel/", run_actions.RunCancel.as_view(), name="api-run-cancel"),
    path("runs/<int:pk>/retry/", run_actions.RunRetry.as_view(), name="api-run-retry"),
    path("runs/<int:pk>/clone/", run_actions.RunClone.as_view(), name="api-run-clone"),
    path("runs/<int:pk>/measure-changes/", changes.MeasureChanges.as_view(), name="api-run-measure-changes"),
    path("runs/<int:pk>/restore/", run_actions.RunRestore.as_view(), name="api-run-restore"),
    path("runs/<int:pk>/measurements/", run_parts.RunMeasurements.as_view(), name="api-run-measurements"),
    path("runs/<int:pk>/attempts/", run_parts.RunAttempts.as_view(), name="api-run-attempts"),
    path("runs/<int:pk>/events/", run_parts.RunEvents.as_view(), name="api-run-events"),
    path("runs/<int:pk>/events/stream/", run_wait.RunStream.as_view(), name="api-run-stream"),
    path("runs/<int:pk>/wait/", run_wait.RunWait.as_view(), name="api-run-wait"),
    path("runs/<int:pk>/points/", run_parts.RunPoints.as_view(), name="api-run-points"),
    path("runs/<int:pk>/result/", run_parts.RunResult.as_view(), name="api-run-result"),
    path("runs/<int:pk>/advice/", advice.RunAdvice.as_view(), name="api-run-advice"),
    path("runs/<int:pk>/certificate/", run_parts.RunCertificate.as_view(), name="api-run-certificate"),
]
_all = [*_runs, *other_urls.urlpatterns]
# the lists: URLs without an id
_names = tuple(str(each.pattern) for each in _all if "<" not in str(each.pattern) and str(each.pattern).endswith("/"))

urlpatterns = [path("", root.Root.as_view(names=_names), name="api-root"), *_all]
