"""Arranges a form's fields by topic: few are open, the others folded, as `engine.settings` declares them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from django import forms

from analysis.http.setting_fields import offer
from analysis.models import Device
from analysis.pages.form_choices import places_offered
from analysis.pages.kinds import BY_KIND
from analysis.pages.spec_form import SpecForm
from analysis.runs.queue.placement import Placement
from engine.settings.adapter_settings import AdapterSettings
from engine.settings.loop_settings import LoopSettings
from engine.settings.spec import DEFAULTS, SETTINGS
from engine.settings.step_settings import StepSettings

COMMON = (
    "precision",
    "optimizer",
    "sequence_length",
    "image_size",
    "accumulation_steps",
    "gradient_checkpointing",
    "lora_rank",
    "load_in_4bit",
)
"""What people change most: shown as soon as "More settings" is open."""


def _rarer(settings: type) -> tuple[str, ...]:
    names = [field.name for field in fields(settings)]
    return tuple(name for name in names if SETTINGS[name].is_in_form and name not in COMMON)


@dataclass(frozen=True)
class Topic:
    title: str
    names: tuple[str, ...]
    hint: str = ""


TRAINING_TOPICS = (
    Topic("LoRA in detail, 8 bits", _rarer(AdapterSettings)),
    Topic("Outputs and loss", _rarer(LoopSettings)),
    Topic("The training step", _rarer(StepSettings)),
)
"""The settings of a training that are not common, as each is declared."""


def topics_of(names: Collection[str]) -> tuple[Topic, ...]:
    """Sort fields of a training into these topics; fields of none of the topics come first, without a name."""
    sorted_in = {name for topic in TRAINING_TOPICS for name in topic.names}
    topics = [replace(topic, names=tuple(n for n in topic.names if n in names)) for topic in TRAINING_TOPICS]
    return (Topic("More", tuple(name for name in names if name not in sorted_in)), *topics)


TRAINING_NAMES = (*COMMON, *(name for topic in TRAINING_TOPICS for name in topic.names))
_OTHER_DEFAULTS = {"reserve_percent": DEFAULTS["reserve_fraction"] * 100}


@dataclass(frozen=True)
class GroupedField:
    """A field, and the class by which the browser hides it for kinds of run that do not use it."""

    field: forms.BoundField
    css_class: str


@dataclass(frozen=True)
class FieldGroup:
    """The fields of a topic, which is open where a field is wrong or differs from its default."""

    topic: Topic
    fields: list[GroupedField]
    is_open: bool


class GroupedForm(forms.Form):
    """A form in which few fields are open, and the others folded by topic."""

    OPEN: ClassVar[tuple[str, ...]] = ()
    TOPICS: ClassVar[tuple[Topic, ...]] = ()

    @property
    def common_fields(self) -> list[GroupedField]:
        return self._grouped(self.OPEN)

    @property
    def folded_groups(self) -> list[FieldGroup]:
        return [FieldGroup(each, self._grouped(each.names), any_needs_a_look(self, each.names)) for each in self.TOPICS]

    def _grouped(self, names: Iterable[str]) -> list[GroupedField]:
        return [GroupedField(self[name], _css_class(name)) for name in names]


class PlacedForm(GroupedForm, SpecForm):
    """A form that starts a run on a chosen device."""

    def offer_places(self, devices: Iterable[Device], *, count: int = 1) -> None:
        self.places = places_offered(devices, count=count)
        offer(self, "device", [(value, label) for value, (label, _) in self.places.items()])

    @property
    def place(self) -> Placement:
        return self.places[self.cleaned_data["device"]][1]


def any_needs_a_look(form: forms.Form, names: Iterable[str]) -> bool:
    return any(name in form.errors or _is_changed(form, name) for name in names)


def _is_changed(form: forms.Form, name: str) -> bool:
    value = form[name].value()
    if name == "memory_limit_bytes" and value == form["suggested_limit"].value():
        return False  # the page filled it in by itself
    default = _OTHER_DEFAULTS.get(name, DEFAULTS.get(name, form.base_fields[name].initial))
    return value not in (None, "") and form.fields[name].has_changed(default, value)


def _css_class(name: str) -> str:
    readers = [pages for pages in BY_KIND.values() if pages.form_label and name not in pages.form_leaves_out]
    return readers[0].form_css_class if len(readers) == 1 else ""
