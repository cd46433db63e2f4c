"""The filters of runs: one set for the page, the export and the API. Every name here is a parameter in the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time
from functools import lru_cache
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django_filters import CharFilter, ChoiceFilter, DateFilter, FilterSet, ModelChoiceFilter, MultipleChoiceFilter

from analysis.http.query_string import StrictQueryForm
from analysis.lists.runs.columns import COLUMNS, DEFAULT_SORT
from analysis.lists.runs.filter_fields import (
    YES,
    MomentFilter,
    SettingBytesFilter,
    SettingChoiceFilter,
    SettingFlagFilter,
    SettingNumberFilter,
    TextFilter,
    WholeNumberFilter,
    YesOrNoFilter,
)
from analysis.lists.runs.order import Sort, sort_named
from analysis.models import PUBLISHED_KINDS, SEARCHES, Device, Run, State, Tag
from analysis.models.querysets import ids_if_few
from analysis.presentation.labels import model_name, short_device_name
from analysis.runs.columns.run_settings import FILTERED, rows_with
from analysis.runs.columns.run_text import ids_with_words, with_words
from analysis.runs.columns.search_terms import search_terms
from engine.catalog import WORKLOADS
from engine.settings.step_settings import OPTIMIZER_LABELS, PRECISIONS

FEW = 10_000
"""Up to this many runs are looked up by id; with more, the list is read in its order until a page is full."""

_DAY = forms.DateInput(attrs={"type": "date"})
_NO_DAY = {"invalid": "must be a day such as 2026-11-22"}
_ONLY = forms.Select(choices=(("", "no"), ("true", "only these")))
_SHORT = tuple((name, name) for name in PRECISIONS)


ORIGINS = {
    "here": ("measured here", Q(reported_from="")),
    "reported": ("reported from elsewhere", ~Q(reported_from="")),
    "trusted": ("reported, trusted", ~Q(reported_from="") & Q(is_trusted=True)),
    "here-or-trusted": ("measured here, or trusted", Q(is_trusted=True)),
    "untrusted": ("reported, not trusted", Q(is_trusted=False)),
}
"""What the filter of the origin offers: its label, and its condition."""


class RunOrderForm(StrictQueryForm):
    """Parameters that every list of runs takes besides the filters."""

    repeatable = ("state",)

    sort = forms.TypedChoiceField(
        choices=[
            (f"{sign}{column.key}", f"{column.title} {arrow}")
            for column in COLUMNS.values()
            if column.order
            for sign, arrow in (("-", "↓"), ("", "↑"))
        ],
        coerce=sort_named,
        initial=DEFAULT_SORT,
        required=False,
        help_text="With - in reverse.",
    )


_TOGETHER: dict[tuple[str, ...], tuple[str, ...]] = {
    ("created_after", "created_before"): ("run",),
    ("largest_min", "largest_max"): ("largest",),
    ("device",): ("gpu",),
    **{(name,): (name,) for name in ("model", "gpu", "state", "kind", "user", "precision", "optimizer")},
    ("finished_after",): ("ended",),
    **{(name,): () for name in ("updated_after", "host", "origin", "certified", "baseline", "shared", "deleted")},
}
"""Filters that are looked up together, as the ends of a range; and the orders in which their matches are adjacent."""


class RunFilter(FilterSet):
    """The filters of the history, joined by AND; several states are joined by OR."""

    q = TextFilter(
        method="with_words", label="Text", help_text="Words, or their beginnings, in name, note, model or GPU."
    )
    model = CharFilter(label="Model", widget=forms.Select)
    gpu = CharFilter(field_name="device_name", label="GPU", widget=forms.Select)
    state = MultipleChoiceFilter(
        choices=State.choices, label="State", widget=forms.CheckboxSelectMultiple, distinct=False
    )
    kind = ChoiceFilter(field_name="kind__published", choices=PUBLISHED_KINDS, label="Kind", empty_label="any")
    user = ModelChoiceFilter(
        field_name="requested_by",
        queryset=get_user_model().objects.all(),
        to_field_name="username",
        label="User",
        widget=forms.TextInput,
        error_messages={"invalid_choice": "there is no user of this name"},
    )
    tag = ModelChoiceFilter(
        queryset=Tag.objects.all(),
        to_field_name="name",
        method="with_tag",
        label="Tag",
        widget=forms.TextInput(attrs={"list": "tags"}),
        error_messages={"invalid_choice": "there is no such tag"},
    )
    device = ModelChoiceFilter(
        queryset=Device.objects.select_related("host"),
        label="Device",
        empty_label="any",
        widget=forms.Select,
        error_messages={"invalid_choice": "there is no such device"},
    )
    precision = ChoiceFilter(choices=_SHORT, label="Precision", empty_label="any")
    optimizer = ChoiceFilter(choices=tuple(OPTIMIZER_LABELS.items()), label="Optimizer", empty_label="any")
    largest_min = WholeNumberFilter(
        field_name="largest_batch_size", lookup_expr="gte", label="Largest, from", min_value=0
    )
    largest_max = WholeNumberFilter(
        field_name="largest_batch_size", lookup_expr="lte", label="Largest, to", min_value=0
    )
    created_after = DateFilter(
        method="created_on_or_after",
        label="Started on or after",
        widget=_DAY,
        help_text="Days are UTC.",
        error_messages=_NO_DAY,
    )
    created_before = DateFilter(
        method="created_before_day", label="Started before", widget=_DAY, error_messages=_NO_DAY
    )
    baseline = YesOrNoFilter(field_name="is_baseline", label="Baseline", widget=YES)
    shared = YesOrNoFilter(field_name="is_shared", label="Shared device", widget=YES)
    certified = YesOrNoFilter(field_name="certified", label="Certified", widget=YES)
    origin = ChoiceFilter(
        choices=tuple((name, label) for name, (label, _) in ORIGINS.items()),
        method="with_origin",
        label="Origin",
        empty_label="any",
    )
    host = CharFilter(field_name="device__host__name", label="Host")
    finished_after = MomentFilter("finished_at", "Ended at or after")
    updated_after = MomentFilter("updated_at", "Changed at or after")
    current_batch_size = SettingNumberFilter("current_batch_size")
    memory_limit_bytes = SettingBytesFilter("memory_limit_bytes")
    sequence_length = SettingNumberFilter("sequence_length")
    image_size = SettingNumberFilter("image_size")
    gradient_checkpointing = SettingFlagFilter("gradient_checkpointing")
    mode = SettingChoiceFilter("mode")
    pretrained = SettingFlagFilter("pretrained")
    deleted = YesOrNoFilter(method="with_deleted", label="Deleted", widget=_ONLY)

    class Meta:
        model = Run
        fields = ()
        form = RunOrderForm

    MAIN = ("q", "model", "gpu", "state")
    """The filters that are always visible; the others are folded until they are used."""

    form: RunOrderForm  # as Meta.form, for the types

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_narrow = False
        # read only when the form is rendered, which the API does not do
        if {"model", "gpu"} <= self.filters.keys():
            self.form.fields["model"].widget.choices = lambda: self._offered("model", WORKLOADS, model_name)
            gpus = Device.objects.order_by("name").values_list("name", flat=True).distinct()
            self.form.fields["gpu"].widget.choices = lambda: self._offered("gpu", gpus, short_device_name)

    @property
    def sort(self) -> Sort:
        return self.form.cleaned_data.get("sort") or sort_named(DEFAULT_SORT)

    def filter_queryset(self, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Apply the filters. One that few runs match is read first, by its own index, and replaced by their ids.

        Otherwise a database that overestimates their number reads the whole history in the list's order.
        `Run.objects` leaves deleted runs out: they have their own query.
        """
        cleaned = self.form.cleaned_data
        given = {name: cleaned[name] for name in self.filters if cleaned[name] not in (None, "", [])}
        if given.get("deleted"):
            queryset = Run.all_runs.all()
        numbers: set[int] | None = None  # ids of the runs that match all selective filters: one list in the statement
        for names in _TOGETHER:
            if given.keys().isdisjoint(names):
                continue
            alone = self._filtered(Run.all_runs.order_by(), given, names)
            few = ids_if_few(alone, FEW)
            if few is None:
                queryset = self._filtered_in_order(queryset, given, names)
            else:
                numbers = set(few) if numbers is None else numbers.intersection(few)
        for name in {"tag", "q", *FILTERED} & given.keys():
            if (few := self._ids_if_few(name, given[name])) is None:
                queryset = self.filters[name].filter(queryset, given[name])
            else:
                numbers = set(few) if numbers is None else numbers.intersection(few)
        if numbers is not None:
            queryset, self.is_narrow = queryset.filter(pk__in=numbers), True
        # a device's runs stand at one place of the GPUs' order
        self.is_narrow |= "device" in given and self.sort.column.key == "gpu"
        return queryset

    def _ids_if_few(self, name: str, value: Any) -> list[int] | None:
        """Return the ids of a tag, a text or a setting, which have indexes of their own."""
        if name == "q":
            return ids_with_words(search_terms(value), FEW)
        rows: QuerySet[Any] = _tagged(value) if name == "tag" else rows_with(name, value)
        return ids_if_few(rows, FEW, "run_id")

    def _filtered_in_order(self, runs: QuerySet[Run], given: dict[str, Any], names: tuple[str, ...]) -> QuerySet[Run]:
        """Apply filters that many runs match: reading in the list's order finds enough of them soon.

        SQLite would collect and sort all of them. A condition on each single run prevents that.
        """
        stays = ("created", *_TOGETHER[names], *(("ended",) if "created_before" in given else ()))
        if connection.vendor != "sqlite" or self.sort.column.key in stays:
            return self._filtered(runs, given, names)
        return runs.filter(Exists(self._filtered(Run.all_runs.filter(pk=OuterRef("pk")).order_by(), given, names)))

    def _filtered(self, runs: QuerySet[Run], given: dict[str, Any], names: tuple[str, ...]) -> QuerySet[Run]:
        for name in names:
            if name in given:
                runs = self.filters[name].filter(runs, given[name])
        return runs

    @property
    def excludes_measured(self) -> bool:
        """Whether no run with a measured figure can pass: only finished measurements have any."""
        given = self.form.cleaned_data
        states = given.get("state") or ()
        return bool(states) and State.FINISHED not in states or given.get("kind") not in (None, "", *SEARCHES)

    def with_deleted(self, runs: QuerySet[Run], name: str, value: bool) -> QuerySet[Run]:
        return runs.filter(deleted_at__isnull=False) if value else runs

    def with_origin(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return runs.filter(ORIGINS[value][1])

    def created_on_or_after(self, runs: QuerySet[Run], name: str, value: date) -> QuerySet[Run]:
        return runs.filter(created_at__gte=datetime.combine(value, time.min, UTC))

    def created_before_day(self, runs: QuerySet[Run], name: str, value: date) -> QuerySet[Run]:
        return runs.filter(created_at__lt=datetime.combine(value, time.min, UTC))

    def with_tag(self, runs: QuerySet[Run], name: str, value: Tag) -> QuerySet[Run]:
        return runs.filter(Exists(_tagged(value).filter(run=OuterRef("pk"))))

    def with_words(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return with_words(runs, search_terms(value))

    def _offered(self, name: str, values: Iterable[str], label: Callable[[str], str]) -> list[tuple[str, str]]:
        chosen: str | None = self.form[name].value()
        known = list(values)
        also = [chosen] if chosen and chosen not in known else []
        return [("", "any"), *((value, label(value)) for value in [*known, *also])]


def only_given(filters: type[RunFilter], query: Iterable[str]) -> type[RunFilter]:
    """Return the set of those filters alone that the query has, for a list that shows no form.

    To make all of them, with a form, is a fourth of what an unfiltered list costs. With an unknown parameter it stays
    the whole set, whose error names what there is.
    """
    names = frozenset(query)
    if names <= filters.base_filters.keys() | filters.Meta.form.base_fields.keys():
        return _subset(filters, names.intersection(filters.base_filters))
    return filters


@lru_cache(maxsize=64)
def _subset(filters: type[RunFilter], names: frozenset[str]) -> type[RunFilter]:
    # None is how a filter set leaves out a filter of its base
    return type(filters.__name__, (filters,), dict.fromkeys(filters.base_filters.keys() - names))


def _tagged(tag: Tag) -> QuerySet[Any]:
    return Run.tags.through.objects.filter(tag=tag)
