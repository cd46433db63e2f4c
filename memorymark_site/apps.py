"""Configuration of third-party applications."""

from importlib import import_module

from django.contrib.admin.apps import AdminConfig
from django.contrib.staticfiles.apps import StaticFilesConfig


class Admin(AdminConfig):
    """Django's admin panel, with our access rules and our first page."""

    default_site = "analysis.admin.site.PortalAdminSite"

    def ready(self) -> None:
        super().ready()
        import_module("analysis.admin.register")  # after the others: it replaces some of their registrations


class StaticFiles(StaticFilesConfig):
    """Serves only those static files of the Swagger UI package that pages load."""

    ignore_patterns = (
        *StaticFilesConfig.ignore_patterns,
        "redoc",  # would load fonts from elsewhere
        "oauth2-redirect.*",
    )
