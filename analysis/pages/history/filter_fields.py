"""Kinds of filters of the history that django-filter has not: yes or no read strictly, moments, settings of a spec."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django_filters import BooleanFilter, ChoiceFilter, Filter

from analysis.http.query_string import FlagField, MomentField, WholeNumberField
from analysis.runs.search_terms import search_terms
from engine.catalog import WORKLOADS
from engine.spec import CHOICES, RANGES, SETTINGS

YES = forms.Select(choices=(("", "either"), ("true", "yes"), ("false", "no")))
_MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class YesOrNoFilter(BooleanFilter):
    """Of a column that holds true or false."""

    field_class = FlagField


class WholeNumberFilter(Filter):
    """Of a column that holds whole numbers."""

    field_class = WholeNumberField


class MomentFilter(Filter):
    """From this moment on."""

    field_class = MomentField

    def __init__(self, column: str, label: str) -> None:
        super().__init__(field_name=column, lookup_expr="gte", label=label, widget=_MOMENT, help_text="UTC.")


TEXT_LENGTH, WORDS_MAX = 200, 5
"""Of a text that is searched for: each word more is another list to intersect."""


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
    """Words that a run is found by."""

    field_class = _TextField


def checked_words(text: str) -> list[str]:
    """Return the search terms of a text. Raises ValidationError."""
    terms = search_terms(text)
    if not terms:
        raise forms.ValidationError("Must hold a letter or a digit.")
    if len(text) > TEXT_LENGTH or len(terms) > WORDS_MAX:
        raise forms.ValidationError(f"Must be at most {WORDS_MAX} words and {TEXT_LENGTH} characters.")
    return terms


class SettingChoiceFilter(ChoiceFilter):
    """Of a setting that stands in the spec alone, with values to choose from."""

    def __init__(self, name: str) -> None:
        choices = tuple((value, value) for value in CHOICES[name])
        super().__init__(field_name=f"spec__{name}", choices=choices, label=SETTINGS[name].label, empty_label="any")


class SettingFlagFilter(YesOrNoFilter):
    """Of a setting that is true or false."""

    def __init__(self, name: str) -> None:
        super().__init__(field_name=f"spec__{name}", label=SETTINGS[name].label, widget=YES)


class InputSizeFilter(WholeNumberFilter):
    """Of tokens or pixels: also of runs that left it to the default of their model."""

    def __init__(self, name: str) -> None:
        low, high = RANGES[name]
        super().__init__(field_name=name, label=SETTINGS[name].label, min_value=int(low), max_value=int(high))

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        if value is None:
            return qs
        path, size = f"spec__{self.field_name}", value
        of_default = [
            workload.id
            for workload in WORKLOADS.values()
            if workload.input_field == self.field_name and workload.default_input_size == size
        ]
        left_out = Q(model__in=of_default) & (Q(**{path: None}) | Q(**{f"{path}__isnull": True}))
        return qs.filter(Q(**{path: size}) | left_out)
