"""URLs of version 1 except those of runs."""

from django.urls import URLPattern, URLResolver, include, path

from analysis.api.kinds import BY_KIND
from analysis.api.v1 import catalog, devices
from analysis.api.v1.lists import compare, fits, matrix, recommendation, saved_views, trends
from analysis.api.v1.people import audit, subscriptions, tokens
from analysis.api.v1.run import reports, share_links

_ONE = "subscriptions/<int:pk>/"
_subscriptions = [
    path("subscriptions/", subscriptions.SubscriptionList.as_view(), name="api-subscriptions"),
    path(_ONE, subscriptions.SubscriptionDetail.as_view(), name="api-subscription"),
    path(f"{_ONE}test/", subscriptions.SubscriptionTest.as_view(), name="api-subscription-test"),
    path(f"{_ONE}secret/", subscriptions.SubscriptionSecret.as_view(), name="api-subscription-secret"),
    path(f"{_ONE}deliveries/", subscriptions.SubscriptionDeliveries.as_view(), name="api-subscription-deliveries"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    *_subscriptions,
    path("models/", catalog.ModelList.as_view(), name="api-models"),
    path("settings/", catalog.SettingsSchema.as_view(), name="api-settings"),
    path("gpus/", catalog.GpuList.as_view(), name="api-gpus"),
    path("devices/", devices.DeviceList.as_view(), name="api-devices"),
    path("devices/<int:pk>/", devices.DeviceDetail.as_view(), name="api-device"),
    *(path(f"{kind}s/", include(each.views)) for kind, each in BY_KIND.items() if each.views),
    path("recommendation/", recommendation.Recommendation.as_view(), name="api-recommendation"),
    path("fits/", fits.Fits.as_view(), name="api-fits"),
    path("compare/", compare.Compare.as_view(), name="api-compare"),
    path("matrix/", matrix.Matrix.as_view(), name="api-matrix"),
    path("trends/", trends.Trend.as_view(), name="api-trends"),
    path("trends/acknowledgements/", trends.TrendNotes.as_view(), name="api-trend-acknowledgements"),
    path("saved-views/", saved_views.SavedViewList.as_view(), name="api-saved-views"),
    path("saved-views/<int:pk>/", saved_views.SavedViewDetail.as_view(), name="api-saved-view"),
    path("share-links/", share_links.ShareLinkList.as_view(), name="api-share-links"),
    path("share-links/<int:pk>/", share_links.ShareLinkDetail.as_view(), name="api-share-link"),
    path("tokens/", tokens.TokenList.as_view(), name="api-tokens"),
    path("tokens/<int:pk>/", tokens.TokenDetail.as_view(), name="api-token"),
    path("reports/", reports.Reports.as_view(), name="api-reports"),
    path("reports/<str:run_key>/events/", reports.ReportEvents.as_view(), name="api-report-events"),
    path("results/", reports.Results.as_view(), name="api-results"),
    path("results/known/", reports.KnownResults.as_view(), name="api-results-known"),
    path("audit/", audit.AuditList.as_view(), name="api-audit"),
]
