"""Common behaviour of all lists and forms: permissions, no row counts, no second log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AdminSplitDateTime
from django.contrib.auth.models import User
from django.db import DataError
from django.db.models import F, Model, Q, QuerySet
from django.forms import CharField, Textarea
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from analysis.audit.record import kind_of
from analysis.http.query_string import is_row_id
from analysis.models.text import plain_line, plain_text
from analysis.permissions import may_manage, signed_in_user
from analysis.presentation.origin import Origin, origin_text
from analysis.runs.bulk import ids_of

PAGES_MAX = 2_000
"""Later pages, of more than 100,000 rows, would have to read all earlier ones: a filter finds the rest."""
_ORIGIN = {"host": "reported_from", "is_trusted": "is_trusted", "person": "requested_by__username"}


class Managed(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """GPU managers may see all rows, and do with them what `may` names."""

    may: tuple[str, ...] = ("add", "change", "delete")
    choices_with: Mapping[str, str] = {}
    """Rows that a field offers to choose from, each read with the row named in its text."""
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    view_on_site = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may_manage(request.user)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return may_manage(request.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return "add" in self.may and may_manage(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "change" in self.may and may_manage(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return "delete" in self.may and may_manage(request.user)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return UncountedList

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Label the two fields of a moment, which Django leaves without labels; refuse text that cannot be printed."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if isinstance(field, CharField):
            field.validators.append(plain_text if isinstance(field.widget, Textarea) else plain_line)
        if field is not None and isinstance(field.widget, AdminSplitDateTime):
            for widget, part in zip(field.widget.widgets, ("date", "time"), strict=True):
                widget.attrs["aria-label"] = f"{field.label}, {part}"
        return field

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_manytomany(db_field, request, **kwargs)
        if field is not None and db_field.name in self.choices_with:
            field.queryset = field.queryset.select_related(self.choices_with[db_field.name])  # type: ignore[union-attr]
        return field

    # the stubs are for a later Django, which also passes the position of the action's form
    def response_action(  # type: ignore[override]
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """Offer actions only on ticked rows: "select all" could mean a million."""
        ticked = request.POST.copy()
        ticked["select_across"] = "0"
        ids = [number for number in ticked.getlist(ACTION_CHECKBOX_NAME) if is_row_id(number)]
        ticked.setlist(ACTION_CHECKBOX_NAME, ids)
        request.POST = ticked  # type: ignore[assignment]  # Django takes a copy that can be written; the stubs do not
        return super().response_action(request, queryset)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        address = reverse("admin:analysis_auditentry_changelist")
        return HttpResponseRedirect(f"{address}?target_kind={kind_of(self.model)}&target_id={object_id}")

    def _no_second_log(self, *args: Any) -> None:
        """Write nothing: the audit log records changes, and a second log could contradict it."""

    log_addition = log_change = log_deletions = _no_second_log  # type: ignore[assignment]  # Django ignores the answer


class ProtectReferencedAdmin(Managed):
    """Rows in allow-lists of other rows: as an empty list allows everybody, they must be removed from it first."""

    named_by: tuple[tuple[type[Model], str], ...] = ()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """List what protects a row from deletion; this holds for superusers, too."""
        listed, counts, needed, protected = super().get_deleted_objects(objs, request)
        keys = [row.pk for row in objs]
        names = [
            f"{capfirst(model._meta.verbose_name)} “{row}” refers to it: change or delete that first"
            for model, column in self.named_by
            for row in model._default_manager.filter(**{f"{column}__in": keys}).distinct()
        ]
        return listed, counts, needed, [*protected, *names]


class ReadOnly(Managed):
    may: tuple[str, ...] = ()


class RunChildAdmin(ReadOnly):
    """Rows that belong to a run, shown by its number and origin: loading the runs would load their results."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        columns = {f"run_{name}": F(f"run__{path}") for name, path in _ORIGIN.items()}
        rows: QuerySet[Any] = self.model._base_manager.order_by("-pk").annotate(**columns)
        return rows

    @admin.display(description="run", ordering="run_id")
    def run_link(self, row: Any) -> SafeString:
        mark = Origin(origin_text(row.run_host, row.run_person), row.run_host, row.run_is_trusted).mark
        return format_html("{}, {}", run_link(row.run_id), mark) if mark else run_link(row.run_id)


@contextmanager
def _refused_as_lookup() -> Iterator[None]:
    """Answer a number too large for any column as Django answers other impossible lookups."""
    try:
        yield
    except (OverflowError, DataError) as error:
        raise IncorrectLookupParameters(error) from error


class UncountedList(ChangeList):
    """Reads one row more than it shows to know whether there is a next page: no COUNT(*) over a million rows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = str(capfirst(self.opts.verbose_name_plural))  # where Django's says "Select ... to change"

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        with _refused_as_lookup():
            return super().get_queryset(request, exclude_parameters)

    def get_results(self, request: HttpRequest) -> None:
        with _refused_as_lookup():
            if not 1 <= self.page_num <= PAGES_MAX:
                raise IncorrectLookupParameters
            first = (self.page_num - 1) * self.list_per_page
            rows = list(self.queryset[first : first + self.list_per_page + 1])
            self.result_list = rows[: self.list_per_page]
            self.result_count = first + len(self.result_list)
            self.full_result_count = None
            self.can_show_all = self.multi_page = False
            self.show_admin_actions = True
            self.has_more = len(rows) > self.list_per_page
            self.paginator = None

    @property
    def next_query(self) -> str | None:
        is_last = not self.has_more or self.page_num == PAGES_MAX
        return None if is_last else self.get_query_string({"p": self.page_num + 1})

    @property
    def first_query(self) -> str | None:
        return None if self.page_num == 1 else self.get_query_string(remove=["p"])


class ConditionFilter(admin.SimpleListFilter):
    def conditions(self) -> Mapping[str, tuple[str, Q]]:
        """Return the values to choose from, each with its label and what it selects; any other selects nothing."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, label) for value, (label, _) in self.conditions().items()]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return rows
        return rows.filter(self.conditions().get(value, ("", Q(pk=None)))[1])


def filter_of(name: str, conditions: Mapping[str, tuple[str, Q]], title: str = "") -> type[ConditionFilter]:
    members = {"title": title or name, "parameter_name": name, "conditions": lambda _: conditions}
    return type(f"By{name.capitalize()}", (ConditionFilter,), members)


def choice_of(
    name: str, offered: Iterable[tuple[str, str]], *, title: str = "", column: str = ""
) -> type[ConditionFilter]:
    return filter_of(name, {value: (label, Q(**{column or name: value})) for value, label in offered}, title)


def run_link(run_id: int) -> SafeString:
    return format_html('<a href="{}">run {}</a>', reverse("admin:analysis_run_change", args=[run_id]), run_id)


def on_ticked(description: str, act: Callable[[list[int], User], str]) -> Any:
    """Make an action on the ticked rows; `act` gets their numbers and who asks, and returns what was done."""

    @admin.action(description=description, permissions=["view"])
    def action(panel: Managed, request: HttpRequest, rows: QuerySet[Any]) -> None:
        panel.message_user(request, act(ids_of(rows), signed_in_user(request)))

    return action


def ended(done: str, end: Callable[[int, User], bool]) -> Callable[[list[int], User], str]:
    """Revoke or withdraw each row, and say how many were so already."""

    def act(ids: list[int], by: User) -> str:
        count = sum(end(pk, by) for pk in ids)
        return f"{count} {done}; {len(ids) - count} were {done} already."

    return act
