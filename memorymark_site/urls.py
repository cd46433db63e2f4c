"""URLs: monitoring, the classic endpoints and the API, the pages, the admin panel and the login."""

from django.contrib import admin
from django.urls import include, path

from analysis.api import operations
from analysis.api.classic.views import index_or
from analysis.pages.home.views import home

urlpatterns = [
    path("readyz", operations.Ready.as_view(), name="readyz"),
    path("metrics", operations.Metrics.as_view(), name="metrics"),
    path("", index_or(home), name="home"),
    path("", include("analysis.api.urls")),
    path("", include("analysis.urls")),
    path("", include("analysis.accounts.views")),
    path("", include("analysis.news.views")),
    path("admin/", admin.site.urls),
]

handler400 = "analysis.http.errors.bad_request"
handler403 = "analysis.http.errors.permission_denied"
handler404 = "analysis.http.errors.page_not_found"
handler500 = "analysis.http.errors.server_error"
