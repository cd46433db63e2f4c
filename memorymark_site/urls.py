"""Addresses: what watchers ask, the classic endpoints and the API, the pages, the admin panel and the login."""

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import include, path

from analysis.api import operations

urlpatterns = [
    path("readyz", operations.Ready.as_view(), name="readyz"),
    path("metrics", operations.Metrics.as_view(), name="metrics"),
    path("", include("analysis.api.urls")),
    path("", include("analysis.urls")),
    path("login/", auth_views.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
]

handler400 = "analysis.api.errors.bad_request"
handler403 = "analysis.api.errors.permission_denied"
handler404 = "analysis.api.errors.page_not_found"
handler500 = "analysis.api.errors.server_error"
