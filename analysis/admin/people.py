"""People, groups, and what people have: tokens, quotas, saved views.

GPU managers open and close accounts and assign roles; only superusers change superusers. Of a token's secret only its
first characters are shown.
"""

from __future__ import annotations

from typing import Any

import django.contrib.auth.admin as django_admin
from django.contrib import admin
from django.contrib.auth.forms import ReadOnlyPasswordHashField, ReadOnlyPasswordHashWidget, UserChangeForm
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from analysis.accounts.tokens import token_revoke
from analysis.admin.lists import Managed, ProtectReferencedAdmin, ReadOnly, ended, on_ticked
from analysis.models import ApiToken, Device, Quota, SavedView, Trust
from analysis.permissions import MANAGER, ROLES, signed_in_user
from analysis.runs import services

for _model in (User, Group):
    admin.site.unregister(_model)  # unregister Django's versions, which require only is_staff

_FOR_SUPERUSERS = ("is_superuser", "user_permissions")
_OWN = "You cannot close your own account or remove your own rights: another GPU manager has to do it."


class MaskedPasswordWidget(ReadOnlyPasswordHashWidget):
    """Shows whether a password is set, without its hash."""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        return {**context, "summary": [{"label": "A password is set." if value else "There is no password."}]}


class PersonForm(UserChangeForm):  # type: ignore[type-arg]  # generic in the stubs alone
    """Lets no manager close their own account, so that there is always a manager."""

    request: HttpRequest
    password = ReadOnlyPasswordHashField(label="Password", widget=MaskedPasswordWidget)

    def clean(self) -> dict[str, Any]:
        data, before = super().clean() or self.cleaned_data, self.request.user
        if self.instance.pk != before.pk:
            return data
        stays_superuser = not before.is_superuser or data.get("is_superuser", True)
        manages = before.is_superuser or "groups" not in data or any(group.name == MANAGER for group in data["groups"])
        if not (data.get("is_active", True) and stays_superuser and manages):
            raise ValidationError(_OWN)
        return data


@admin.register(User)
class PersonAdmin(ProtectReferencedAdmin, django_admin.UserAdmin):  # type: ignore[type-arg]
    """Accounts, closed rather than deleted, so that actions keep their name; both cancel waiting runs."""

    form = PersonForm
    named_by = ((Device, "allowed_users"), (Quota, "user"))
    list_display = ("username", "first_name", "last_name", "roles", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser", "groups")
    search_fields = ("username", "first_name", "last_name", "email")
    ordering = ("username",)
    filter_horizontal = ("groups",)
    choices_with = {"user_permissions": "content_type"}
    raw_id_fields = ()
    actions = ("close", "open_again")
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Who", {"fields": ("first_name", "last_name", "email")}),
        ("Rights", {"fields": ("is_active", "groups", "is_superuser", "user_permissions")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "usable_password", "password1", "password2")}),
        ("Roles", {"fields": ("groups",)}),
    )
    readonly_fields = ("last_login", "date_joined")

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return super().get_queryset(request).prefetch_related("groups")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type(form.__name__, (form,), {"request": request})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        locked = () if request.user.is_superuser else _FOR_SUPERUSERS
        return (*super().get_readonly_fields(request, obj), *locked)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let only superusers change superusers. The form that sets a password checks this, too."""
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return super().has_change_permission(request, obj) and not is_above

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_superuser and (obj is None or obj.pk != request.user.pk)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Delete an account's tokens and saved views with it: they need no permission of their own."""
        listed, counts, _needed, protected = super().get_deleted_objects(objs, request)
        if Trust.objects.filter(token__owner__in=[person.pk for person in objs]).exists():
            protected = [*protected, "Close the account instead: who trusted its tokens, and when, stays on record"]
        return listed, counts, set(), protected

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            services.runs_cancel_waiting_of(people=[obj])

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        services.runs_cancel_waiting_of(people=[obj])
        super().delete_model(request, obj)

    @admin.display(description="roles and groups")
    def roles(self, person: User) -> str:
        names = [group.name for group in person.groups.all()]
        if person.is_superuser:
            return ", ".join(["superuser: may do everything", *names])
        return ", ".join(names) or "none: sees nothing"

    @admin.action(description="Close the account", permissions=["change"])
    def close(self, request: HttpRequest, people: QuerySet[User]) -> None:
        count = self._set_active(request, people, False)
        self.message_user(request, f"{count} closed. Their waiting runs are cancelled; running ones are left to end.")

    @admin.action(description="Open the account again", permissions=["change"])
    def open_again(self, request: HttpRequest, people: QuerySet[User]) -> None:
        self.message_user(request, f"{self._set_active(request, people, True)} opened again.")

    def _set_active(self, request: HttpRequest, people: QuerySet[User], is_active: bool) -> int:
        """Change single accounts, for the audit log, but not the manager's own; superusers only by a superuser."""
        changed = people.exclude(pk=signed_in_user(request).pk).exclude(is_active=is_active)
        chosen = [person for person in changed if self.has_change_permission(request, person)]
        with transaction.atomic():
            for person in chosen:
                person.is_active = is_active
                person.save(update_fields=["is_active"])
            if not is_active:
                services.runs_cancel_waiting_of(people=chosen)
        return len(chosen)


@admin.register(Group)
class GroupAdmin(ProtectReferencedAdmin):
    """Groups have allow-lists and quotas; three of them are the roles, whose names and rights are fixed."""

    named_by = ((Device, "allowed_groups"), (Quota, "group"))
    list_display = ("name", "is_role")
    search_fields = ("name",)
    ordering = ("name",)
    filter_horizontal = ("permissions",)
    choices_with = {"permissions": "content_type"}

    @admin.display(description="a role", boolean=True)
    def is_role(self, group: Group) -> bool:
        return group.name in ROLES

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is not None and obj.name in ROLES:
            return ("name", "permissions")
        return () if request.user.is_superuser else ("permissions",)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.name not in ROLES)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = (
        *("prefix", "name", "owner", "may_write", "created_at", "expires_at"),
        *("last_used_at", "last_used_address", "revoked_at"),
    )
    list_filter = ("may_write",)
    list_select_related = ("owner",)
    search_fields = ("prefix", "name", "owner__username")
    ordering = ("-created_at", "-id")
    sortable_by = ()
    fields = list_display
    actions = ("revoke",)
    revoke = on_ticked(
        "Revoke: refuse it from now on", ended("revoked", lambda pk, by: token_revoke(token_id=pk, by=by))
    )


@admin.register(Quota)
class QuotaAdmin(Managed):
    list_display = ("of", "runs_waiting_max", "runs_per_day_max", "time_budget_max_seconds", "device_count")
    list_select_related = ("user", "group")
    search_fields = ("user__username", "group__name")
    autocomplete_fields = ("user",)
    filter_horizontal = ("devices",)
    choices_with = {"devices": "host"}
    fieldsets = (
        (
            None,
            {
                "fields": ("user", "group"),
                "description": "Choose a person or a group. A person's own quota counts alone; "
                "of several groups the highest value of each field does.",
            },
        ),
        ("At most", {"fields": ("runs_waiting_max", "runs_per_day_max", "time_budget_max_seconds", "devices")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Quota]:
        return super().get_queryset(request).prefetch_related("devices")

    @admin.display(description="person or group")
    def of(self, quota: Quota) -> str:
        return f"{quota.user}" if quota.user_id else f"each person of {quota.group}"

    @admin.display(description="devices")
    def device_count(self, quota: Quota) -> Any:
        return len(quota.devices.all()) or "all"


@admin.register(SavedView)
class SavedViewAdmin(ReadOnly):
    may = ("delete",)
    list_display = ("name", "owner", "is_shared", "query", "created_at")
    list_filter = ("is_shared",)
    list_select_related = ("owner",)
    search_fields = ("name", "owner__username")
