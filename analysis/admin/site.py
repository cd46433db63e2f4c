"""The admin panel as a whole: access, grouping of its parts, and the dashboard on its first page."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.utils.text import capfirst

from analysis.admin.dashboard import dashboard
from analysis.permissions import may_manage

_SECTIONS = {
    "Runs": (
        *("Run", "Attempt", "Measurement", "RunLog", "Tag", "ShareLink"),
        *("MatrixCell", "TrendAcknowledgement", "Report", "Trust"),
    ),
    "Fleet": ("Device", "Host", "GpuPrice", "Queue"),
    "People": ("User", "Group", "Quota", "ApiToken", "SavedView"),
    "Notifications": ("Subscription", "Delivery", "AllowedHost"),
    "Data retention": ("AuditEntry", "RetentionRule"),
}
_OTHER = "Other"
_TASKS = (
    (
        "People and limits",
        "Who may start what, how much and for how long",
        "analysis.Quota",
        ("auth.User", "auth.Group"),
    ),
    ("Devices and maintenance", "Drain, maintenance windows, who may use a GPU", "analysis.Device", ("analysis.Host",)),
    ("Prices", "What an hour of each GPU costs the lab, with source and date", "analysis.GpuPrice", ()),
    (
        "Trust and tokens",
        "Whose reports count like runs measured here",
        "analysis.Trust",
        ("analysis.ApiToken", "analysis.Report"),
    ),
    (
        "Retention and audit",
        "What is deleted when, and who changed what",
        "analysis.RetentionRule",
        ("analysis.AuditEntry",),
    ),
    ("Health", "Waiting runs and why, workers, failed tasks", "", ("analysis.Subscription", "analysis.Delivery")),
)
"""What a GPU manager comes for: title, explanation, the model of the task (empty: the queue), and related models."""

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class PortalAdminSite(AdminSite):
    """The panel for GPU managers and superusers; `is_staff` grants nothing here. Its login is the portal's."""

    site_title = "MemoryMark"
    site_header = "MemoryMark"
    index_title = "Administration"
    index_template = "admin/dashboard.html"
    empty_value_display = "–"
    enable_nav_sidebar = False  # the lists need the width

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self.disable_action("delete_selected")

    def has_permission(self, request: HttpRequest) -> bool:
        return request.user.is_active and may_manage(request.user)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Answer 403 to a person who is signed in without the right, instead of a redirect to the login."""
        inner = super().admin_view(view, cacheable)

        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.user.is_authenticated and not self.has_permission(request):
                raise PermissionDenied
            return inner(request, *args, **kwargs)

        # a wrapper, as Django's own method returns, although the stubs promise the same type of view
        return update_wrapper(checked, inner)  # type: ignore[return-value]

    @method_decorator(login_not_required)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"), reverse("login"))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        return super().index(request, {"dashboard": dashboard(), "tasks": _tasks(), **(extra_context or {})})

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """Group the models by subject, not by the package they come from."""
        apps = super().get_app_list(request, app_label)
        queue = {
            "name": "Queue and workers",
            "object_name": "Queue",
            "perms": {"add": False, "change": False, "delete": False, "view": True},
            **{"admin_url": reverse("admin:queue"), "add_url": None, "view_only": True},
        }
        models = {model["object_name"]: model for app in apps for model in app["models"]} | {"Queue": queue}
        sections = [
            _section(name, [models.pop(each) for each in names if each in models]) for name, names in _SECTIONS.items()
        ]
        return [section for section in (*sections, _section(_OTHER, [*models.values()])) if section["models"]]

    def get_urls(self) -> list[URLPattern | URLResolver]:
        from analysis.admin.queue import queue_page  # unregisters models from this site, which has to exist first

        return [path("queue/", self.admin_view(queue_page), name="queue"), *super().get_urls()]


def _tasks() -> list[dict[str, Any]]:
    return [
        {
            "title": title,
            "text": text,
            "address": _list_of(label)[1] if label else reverse("admin:queue"),
            "more": [_list_of(related) for related in more],
        }
        for title, text, label, more in _TASKS
    ]


def _list_of(label: str) -> tuple[str, str]:
    """Return the title and the address of a model's list."""
    meta = apps.get_model(label)._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
    return str(capfirst(meta.verbose_name_plural)), address


def _section(name: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "app_label": name.lower().replace(" ", "-"),
        "app_url": reverse("admin:index"),
        "has_module_perms": True,
        "models": models,
    }
