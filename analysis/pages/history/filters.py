"""The filters of runs: one set for the page, the export and the API. Every name here is a parameter in the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django_filters import (
    BooleanFilter,
    CharFilter,
    ChoiceFilter,
    DateFilter,
    FilterSet,
    ModelChoiceFilter,
    MultipleChoiceFilter,
    NumberFilter,
)

from analysis.models import Device, Run, SearchTerm, State, Tag
from analysis.models.querysets import ids_if_few
from analysis.presentation.labels import model_name, short_device_name
from analysis.runs.search_terms import search_terms
from engine.catalog import WORKLOADS
from engine.spec import OPTIMIZERS, PRECISIONS

FEW = 10_000
"""Up to so many runs are looked up by number; of more, the list is walked in its order until a page is full."""

_DAY = forms.DateInput(attrs={"type": "date"})
_YES = forms.Select(choices=(("", "either"), ("true", "yes"), ("false", "no")))
_ONLY = forms.Select(choices=(("", "no"), ("true", "only these")))
_SHORT = tuple((name, name) for name in PRECISIONS)


class _YesOrNoField(forms.NullBooleanField):
    """Refuses a word that is neither, where Django would pass it over: then nothing would be filtered."""

    # None is NullBooleanField's third answer, though it inherits from a field of two
    def to_python(self, value: Any) -> bool | None:  # type: ignore[override]
        found: bool | None = super().to_python(value)
        if found is None and value not in (None, ""):
            raise forms.ValidationError("Must be true or false.")
        return found


class YesOrNoFilter(BooleanFilter):
    """Of a column that holds true or false."""

    field_class = _YesOrNoField


_TOGETHER: dict[tuple[str, ...], tuple[str, ...]] = {
    ("created_after", "created_before"): ("run",),
    ("largest_min", "largest_max"): ("largest",),
    ("device",): ("gpu",),
    **{(name,): (name,) for name in ("model", "gpu", "state", "kind", "user", "precision", "optimizer")},
    **{(name,): () for name in ("baseline", "shared", "deleted")},
}
"""Which filters are looked up together, as a range's two ends; and the orders in which what passes stands together."""


class RunFilter(FilterSet):
    """What of the history is wanted. Filters are joined by AND; several states by OR."""

    q = CharFilter(method="with_text", label="Text", help_text="Of name, note, model or GPU.")
    model = CharFilter(label="Model", widget=forms.Select)
    gpu = CharFilter(field_name="device_name", label="GPU", widget=forms.Select)
    state = MultipleChoiceFilter(
        choices=State.choices, label="State", widget=forms.CheckboxSelectMultiple, distinct=False
    )
    kind = ChoiceFilter(choices=Run.Kind.choices, label="Kind", empty_label="any")
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
        queryset=Device.objects.select_related("host"), label="Device", empty_label="any", widget=forms.Select
    )
    precision = ChoiceFilter(choices=_SHORT, label="Precision", empty_label="any")
    optimizer = ChoiceFilter(choices=tuple(OPTIMIZERS.items()), label="Optimizer", empty_label="any")
    largest_min = NumberFilter(field_name="largest_batch_size", lookup_expr="gte", label="Largest, from", min_value=0)
    largest_max = NumberFilter(field_name="largest_batch_size", lookup_expr="lte", label="Largest, to", min_value=0)
    created_after = DateFilter(
        method="created_on_or_after", label="Started on or after", widget=_DAY, help_text="Days are UTC."
    )
    created_before = DateFilter(method="created_before_day", label="Started before", widget=_DAY)
    baseline = YesOrNoFilter(field_name="is_baseline", label="Baseline", widget=_YES)
    shared = YesOrNoFilter(field_name="is_shared", label="Shared card", widget=_YES)
    deleted = YesOrNoFilter(method="with_deleted", label="Deleted", widget=_ONLY)

    class Meta:
        model = Run
        fields = ()

    MAIN = ("q", "model", "gpu", "state")
    """Always in sight; the others are folded away until they are used."""

    def __init__(self, *args: Any, order: str = "created", **kwargs: Any) -> None:
        """`order`: the column that the runs will be sorted on."""
        super().__init__(*args, **kwargs)
        self.order = order
        self.is_narrow = False
        # asked for by whoever draws the form alone: the API does not
        self.form.fields["model"].widget.choices = lambda: self._offered("model", WORKLOADS, model_name)
        self.form.fields["gpu"].widget.choices = lambda: self._offered("gpu", self._gpu_names(), short_device_name)

    def filter_queryset(self, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Ask a filter that few runs pass by itself, from its index, and filter by their numbers.

        Otherwise a database that misjudges how few they are walks the whole history for them in the list's order.
        `Run.objects` leaves deleted runs out: they are read by themselves.
        """
        given = {name: value for name, value in self.form.cleaned_data.items() if value not in (None, "", [])}
        if given.get("deleted"):
            queryset = Run.all_runs.all()
        for names in _TOGETHER:
            if given.keys().isdisjoint(names):
                continue
            alone = self._narrowed(Run.all_runs.order_by(), given, names)
            few = ids_if_few(alone, FEW)
            if few is None:
                queryset = self._walked(queryset, given, names)
            else:
                queryset, self.is_narrow = queryset.filter(pk__in=few), True
        # a device's runs stand at one place of the GPUs' order
        self.is_narrow |= "device" in given and self.order == "gpu"
        return self._narrowed(queryset, given, ("tag", "q"))

    def _walked(self, runs: QuerySet[Run], given: dict[str, Any], names: tuple[str, ...]) -> QuerySet[Run]:
        """By filters that many runs pass: the list's own order has them soon enough.

        SQLite would rather collect them all and sort them. Asked about each run by itself, it cannot.
        """
        stays = ("created", *_TOGETHER[names], *(("ended",) if "created_before" in given else ()))
        if connection.vendor != "sqlite" or self.order in stays:
            return self._narrowed(runs, given, names)
        return runs.filter(Exists(self._narrowed(Run.all_runs.filter(pk=OuterRef("pk")).order_by(), given, names)))

    def _narrowed(self, runs: QuerySet[Run], given: dict[str, Any], names: tuple[str, ...]) -> QuerySet[Run]:
        """By these filters, as far as they are given."""
        for name in names:
            if name in given:
                runs = self.filters[name].filter(runs, given[name])
        return runs

    @property
    def leaves_out_all_measured(self) -> bool:
        """Whether no run with a measured figure can pass: only finished measurements have any."""
        states = self.form.cleaned_data["state"]
        return bool(states) and State.FINISHED not in states or self.form.cleaned_data["kind"] == Run.Kind.ESTIMATE

    def with_deleted(self, runs: QuerySet[Run], name: str, value: bool) -> QuerySet[Run]:
        return runs.filter(deleted_at__isnull=False) if value else runs

    def created_on_or_after(self, runs: QuerySet[Run], name: str, value: date) -> QuerySet[Run]:
        return runs.filter(created_at__gte=datetime.combine(value, time.min, UTC))

    def created_before_day(self, runs: QuerySet[Run], name: str, value: date) -> QuerySet[Run]:
        return runs.filter(created_at__lt=datetime.combine(value, time.min, UTC))

    def with_tag(self, runs: QuerySet[Run], name: str, value: Tag) -> QuerySet[Run]:
        return runs.filter(_named_by(Run.tags.through.objects.filter(tag=value)))

    def with_text(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        """Each word of the text begins a word of the run's name or note, or is in its model's or GPU's name."""
        for word in search_terms(value):
            runs = runs.filter(self._has_word(word))
        return runs

    def _has_word(self, word: str) -> Q:
        models = [key for key in WORKLOADS if word in f"{key} {model_name(key)}".casefold()]
        gpus = [gpu for gpu in self._gpu_names() if word in gpu.casefold()]
        found = _named_by(SearchTerm.objects.filter(_begins_with(word)))
        if models:
            found |= Q(model__in=models)
        if gpus:
            found |= Q(device_name__in=gpus)
        return found

    def _gpu_names(self) -> list[str]:
        if not hasattr(self, "_gpus"):
            self._gpus = list(Device.objects.order_by("name").values_list("name", flat=True).distinct())
        return self._gpus

    def _offered(self, name: str, values: Iterable[str], label: Callable[[str], str]) -> list[tuple[str, str]]:
        """With the value that is requested, also where it is no longer offered."""
        chosen: str | None = self.form[name].value()
        known = list(values)
        also = [chosen] if chosen and chosen not in known else []
        return [("", "any"), *((value, label(value)) for value in [*known, *also])]


def _named_by(rows: QuerySet[Any]) -> Q:
    """Select the runs that these rows point to: rare ones by their numbers, frequent ones asked about run by run.

    A database that is not told guesses wrong in one of the two cases, and then reads the whole history.
    """
    few = ids_if_few(rows, FEW, "run_id")
    return Q(Exists(rows.filter(run=OuterRef("pk")))) if few is None else Q(pk__in=few)


def _begins_with(word: str) -> Q:
    if connection.vendor == "sqlite":  # whose LIKE uses no index of ours
        return Q(word__gte=word, word__lt=f"{word}\U0010ffff")
    return Q(word__startswith=word)
