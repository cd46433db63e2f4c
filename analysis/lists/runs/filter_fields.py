"""Filters of the history that django-filter does not have: strict yes or no, moments, settings of a spec."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

from django import forms
from django.db.models import QuerySet
from django_filters import BooleanFilter, DateFilter, Filter

from analysis.http.query_string import FlagField, MomentField, WholeNumberField
from analysis.runs.columns.run_settings import rows_with
from analysis.runs.columns.search_terms import search_terms
from engine.spec import CHOICES, RANGES, SETTINGS
from engine.text.units import BYTES_ALLOWED, parse_bytes

YES = forms.Select(choices=(("", "either"), ("true", "yes"), ("false", "no")))
_DAY = forms.DateInput(attrs={"type": "date"})
_MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class YesOrNoFilter(BooleanFilter):
    """Filters a column of true and false."""

    field_class = FlagField


class WholeNumberFilter(Filter):
    """Filters a column of whole numbers."""

    field_class = WholeNumberField


class DayFilter(DateFilter):
    """Compares a column of moments with the beginning of a day (UTC)."""

    def __init__(self, column: str, lookup: str, label: str, **options: Any) -> None:
        told = {"invalid": "must be a day such as 2026-11-22"}
        super().__init__(column, lookup, label=label, widget=_DAY, error_messages=told, **options)

    def filter(self, qs: QuerySet[Any], value: date | None) -> QuerySet[Any]:
        return super().filter(qs, value and datetime.combine(value, time.min, UTC))


class MomentFilter(Filter):
    """Finds what happened from this moment on."""

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
    """Finds runs by words."""

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
    """Filters by a setting of the spec, which has rows of its own; one that was left to the model has one too."""

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
