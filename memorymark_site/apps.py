"""Configuration of other people's applications."""

from importlib import import_module

from django.contrib.admin.apps import AdminConfig
from django.contrib.staticfiles.apps import StaticFilesConfig


class Admin(AdminConfig):
    """Django's panel, with our rules of who may enter and our first page."""

    default_site = "analysis.admin.site.PortalAdminSite"

    def ready(self) -> None:
        super().ready()
        import_module("analysis.admin.register")  # after the others: it takes the place of some of theirs


class StaticFiles(StaticFilesConfig):
    """Of the wheel that brings Swagger UI only what pages load is served; the rest is left where it is."""

    ignore_patterns = (
        *StaticFilesConfig.ignore_patterns,
        "redoc",  # would load fonts from elsewhere
        "oauth2-redirect.*",
    )
