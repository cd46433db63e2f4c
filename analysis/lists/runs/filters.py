"""The filters of runs: one set for the page, the export and the API. Every name here is a parameter in the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django_filters import (
    BooleanFilter,
    CharFilter,
    ChoiceFilter,
    DateFilter,
    Filter,
    FilterSet,
    ModelChoiceFilter,
    MultipleChoiceFilter,
)

from analysis.http.query_string import FlagField, MomentField, QueryProblem, StrictQueryForm, WholeNumberField
from analysis.lists.runs.columns import COLUMNS, DEFAULT_SORT, Sort, sort_named
from analysis.models import PUBLISHED_KINDS, Device, Run, State, Tag
from analysis.models.keyset import ListPart, Page, page_of
from analysis.models.querysets import ids_if_few
from analysis.presentation.labels import model_name, short_device_name
from analysis.runs.columns.run_settings import rows_with
from analysis.runs.columns.run_text import with_words
from analysis.runs.columns.search_terms import search_terms
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import CHOICES, RANGES, SETTINGS
from engine.settings.step_settings import OPTIMIZER_LABELS, PRECISIONS
from engine.text.units import BYTES_ALLOWED, parse_bytes

YES = forms.Select(choices=(("", "either"), ("true", "yes"), ("false", "no")))
_DAY = forms.DateInput(attrs={"type": "date"})
_MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class YesOrNoFilter(BooleanFilter):
    field_class = FlagField


class WholeNumberFilter(Filter):
    field_class = WholeNumberField


class DayFilter(DateFilter):
    """Compares a column of moments with the beginning of a day (UTC)."""

    def __init__(self, column: str, lookup: str, label: str, **options: Any) -> None:
        told = {"invalid": "must be a day such as 2026-11-22"}
        super().__init__(column, lookup, label=label, widget=_DAY, error_messages=told, **options)

    def filter(self, qs: QuerySet[Any], value: date | None) -> QuerySet[Any]:
        return super().filter(qs, value and datetime.combine(value, time.min, UTC))


class MomentFilter(Filter):
    field_class = MomentField

    def __init__(self, column: str, label: str) -> None:
        super().__init__(field_name=column, lookup_expr="gte", label=label, widget=_MOMENT, help_text="UTC.")


TEXT_LENGTH, WORDS_MAX = 200, 5
"""The longest text that is searched for: each further word is another list to intersect."""


class _TextField(forms.CharField):
    """Refuses a text without a word, which would find everything, and one that would cost much."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.max_length = TEXT_LENGTH  # part of the API description; longer text is refused below

    def clean(self, value: Any) -> str:
        text = str(super().clean(value))
        if text:
            checked_words(text)
        return text


class TextFilter(Filter):
    field_class = _TextField


def checked_words(text: str) -> list[str]:
    """Return the search terms of a text. Raises ValidationError."""
    terms = search_terms(text)
    if not terms:
        raise forms.ValidationError("Must hold a letter or a digit.")
    if len(text) > TEXT_LENGTH or len(terms) > WORDS_MAX:
        raise forms.ValidationError(f"Must be at most {WORDS_MAX} words and {TEXT_LENGTH} characters.")
    return terms


class _BytesField(WholeNumberField):
    """A number of bytes, or a size as people write it: 24GiB."""

    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        try:
            return super().to_python(parse_bytes(str(value)))
        except ValueError as error:
            raise forms.ValidationError(f"must be {BYTES_ALLOWED}") from error


class SettingFilter(Filter):
    """Filters by a setting of the spec by its own rows; settings that were left to the model have rows too."""

    def __init__(self, name: str, **options: Any) -> None:
        if name in RANGES:
            low, high = RANGES[name]
            self.field_class: type[forms.Field] = WholeNumberField
            options |= {"min_value": int(low), "max_value": int(high)}
        elif name in CHOICES:
            self.field_class = forms.ChoiceField
            options["choices"] = (("", "any"), *((value, value) for value in CHOICES[name]))
        else:
            self.field_class = FlagField
            options["widget"] = YES
        if name == "memory_limit_bytes":
            self.field_class, options["widget"] = _BytesField, forms.TextInput
        self.setting = name
        super().__init__(field_name=name, label=SETTINGS[name].label, **options)

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        if value in (None, ""):
            return qs
        return qs.filter(pk__in=rows_with(self.setting, value).values("run"))


FEW = 10_000
"""Up to this many runs are looked up by id; with more, the list is read in its order until a page is full."""

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
    created_after = DayFilter("created_at", "gte", "Started on or after", help_text="Days are UTC.")
    created_before = DayFilter("created_at", "lt", "Started before")
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
    current_batch_size = SettingFilter("current_batch_size")
    memory_limit_bytes = SettingFilter("memory_limit_bytes", help_text="A size such as 24GiB, or bytes.")
    sequence_length = SettingFilter("sequence_length")
    image_size = SettingFilter("image_size")
    gradient_checkpointing = SettingFilter("gradient_checkpointing")
    mode = SettingFilter("mode")
    pretrained = SettingFilter("pretrained")
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
        # read only when the form is rendered, which the API does not do
        gpus = Device.objects.order_by("name").values_list("name", flat=True).distinct()
        self.form.fields["model"].widget.choices = lambda: self._offered("model", WORKLOADS, model_name)
        self.form.fields["gpu"].widget.choices = lambda: self._offered("gpu", gpus, short_device_name)

    @property
    def problems(self) -> tuple[QueryProblem, ...]:
        return self.form.problems

    @property
    def sort(self) -> Sort:
        return self.form.cleaned_data.get("sort") or sort_named(DEFAULT_SORT)

    @property
    def parts(self) -> list[ListPart[Run]]:
        return self.sort.parts(self.qs)

    def page(self, size: int, after: int | None = None, before: int | None = None) -> Page[Run]:
        """Read what a list shows of a page of these runs, and nothing more. Raises BadQuery for a run that is gone."""
        rows = Run.all_runs.for_history().order_by().prefetch_related("tags").defer("result", "error_message")
        return page_of(self.parts, rows, size=size, after=after, before=before)

    @property
    def filter_query(self) -> str:
        return self.query(columns=None, group_by=None)

    def query(self, **changes: Any) -> str:
        """Write this view's query string with changed parameters, from the first page on; None drops a parameter."""
        data = self.form.given.copy()
        for name in ("after", "before", *changes):
            data.pop(name, None)
        for name, value in changes.items():
            if value is not None:
                data[name] = str(value)
        return data.urlencode(safe=",:/")

    def filter_queryset(self, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Apply the filters; a selective one becomes ids first, or a wrong plan would read the whole history."""
        cleaned = self.form.cleaned_data
        given = {name: cleaned[name] for name in self.filters if cleaned[name] not in (None, "", [])}
        if given.get("deleted"):  # `Run.objects` leaves them out
            queryset = Run.all_runs.all()
        numbers: set[int] | None = None  # ids of the runs that match all selective filters: one list in the statement
        for name, value in given.items():
            few = ids_if_few(self.filters[name].filter(Run.all_runs.order_by(), value), FEW)
            if few is None:
                queryset = self.filters[name].filter(queryset, value)
            else:
                numbers = set(few) if numbers is None else numbers.intersection(few)
        return queryset if numbers is None else queryset.filter(pk__in=numbers)

    def with_deleted(self, runs: QuerySet[Run], name: str, value: bool) -> QuerySet[Run]:
        return runs.filter(deleted_at__isnull=False) if value else runs

    def with_origin(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return runs.filter(ORIGINS[value][1])

    def with_tag(self, runs: QuerySet[Run], name: str, value: Tag) -> QuerySet[Run]:
        return runs.filter(pk__in=Run.tags.through.objects.filter(tag=value).values("run"))

    def with_words(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        return with_words(runs, search_terms(value))

    def _offered(self, name: str, values: Iterable[str], label: Callable[[str], str]) -> list[tuple[str, str]]:
        chosen: str | None = self.form[name].value()
        known = list(values)
        also = [chosen] if chosen and chosen not in known else []
        return [("", "any"), *((value, label(value)) for value in [*known, *also])]
