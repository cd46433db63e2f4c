"""Filters of the history that django-filter does not have: strict yes or no, moments, settings of a spec."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, QuerySet
from django_filters import BooleanFilter, ChoiceFilter, Filter

from analysis.http.query_string import FlagField, MomentField, WholeNumberField
from analysis.runs.columns.run_settings import rows_with
from analysis.runs.columns.search_terms import search_terms
from engine.spec import CHOICES, RANGES, SETTINGS
from engine.text.units import BYTES_ALLOWED, parse_bytes

YES = forms.Select(choices=(("", "either"), ("true", "yes"), ("false", "no")))
_MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class YesOrNoFilter(BooleanFilter):
    """Filters a column of true and false."""

    field_class = FlagField


class WholeNumberFilter(Filter):
    """Filters a column of whole numbers."""

    field_class = WholeNumberField


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


class SettingFilter(Filter):
    """Filters by a setting of the spec, which has rows of its own."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(field_name=name, label=SETTINGS[name].label, **options)
        self.setting = name

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        if value in (None, ""):
            return qs
        return qs.filter(Exists(rows_with(self.setting, value).filter(run=OuterRef("pk"))))


class SettingChoiceFilter(SettingFilter, ChoiceFilter):
    """Filters by a setting with values to choose from."""

    def __init__(self, name: str) -> None:
        choices = tuple((value, value) for value in CHOICES[name])
        super().__init__(name, choices=choices, empty_label="any")


class SettingFlagFilter(SettingFilter, YesOrNoFilter):
    """Filters by a setting that is true or false."""

    def __init__(self, name: str) -> None:
        super().__init__(name, widget=YES)


class _BytesField(WholeNumberField):
    """A number of bytes, or a size as people write it: 24GiB."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.TextInput, **options)

    def to_python(self, value: Any) -> int | None:
        if value in self.empty_values:
            return None
        try:
            return super().to_python(parse_bytes(str(value)))
        except ValueError as error:
            raise forms.ValidationError(f"must be {BYTES_ALLOWED}") from error


class SettingBytesFilter(SettingFilter):
    """Filters by a setting that is a size in bytes."""

    field_class = _BytesField

    def __init__(self, name: str) -> None:
        low, high = RANGES[name]
        hint = "A size such as 24GiB, or bytes."
        super().__init__(name, min_value=int(low), max_value=int(high), help_text=hint)


class SettingNumberFilter(SettingFilter, WholeNumberFilter):
    """Filters by a setting that is a whole number; finds an input size also where it was left to the default."""

    def __init__(self, name: str) -> None:
        low, high = RANGES[name]
        super().__init__(name, min_value=int(low), max_value=int(high))
