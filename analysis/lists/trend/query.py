"""The query string of a trend: which series it names."""

from __future__ import annotations

from typing import Any

from django import forms

from analysis.http.query_string import FlagField, StrictQueryForm, WholeNumberField
from analysis.http.setting_fields import setting_field, with_fields
from analysis.runs.columns.series import SeriesKey, default_input_size
from engine.settings.rank_settings import OF_STARTS
from engine.spec import SETTINGS, TRAINING_SETTINGS

_INPUT_SIZES = ("sequence_length", "image_size", "input_size")


@with_fields(
    {name: setting_field(name, label="", help_text=SETTINGS[name].description) for name in TRAINING_SETTINGS},
    after="gpu",
)
class TrendForm(StrictQueryForm):
    """`?model=bert&gpu=A100&...`: a setting that is left out has the default of a new run."""

    # any text: the runs of a model that is no longer offered still have their trend
    model = forms.CharField(label="", help_text=SETTINGS["model"].description)
    gpu = forms.CharField(label="", help_text="`device_name` of the runs.")
    sequence_length = WholeNumberField(label="", required=False, help_text="Tokens. Default: the model's.")
    image_size = WholeNumberField(
        label="", required=False, help_text="Side of the image in pixels. Default: the model's."
    )
    input_size = WholeNumberField(
        label="", required=False, help_text="The same as `sequence_length` or `image_size`, by its former name."
    )
    memory_limit_bytes = WholeNumberField(
        label="", required=False, help_text="Memory limit of the runs. Default: no limit."
    )
    emulate_ranks = WholeNumberField(
        label="", required=False, help_text=f"{OF_STARTS['emulate_ranks'].label} of the runs. Default: none."
    )

    own_script = FlagField(
        label="",
        required=False,
        initial=False,
        help_text="Whether `model` is the name of an own script, of which no setting is known.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        sizes = [name for name in _INPUT_SIZES if name in self.given]
        for name in sizes[1:]:
            self.add_error(name, f"is given besides {sizes[0]}; give one of them")
        if cleaned.get("own_script"):
            for name in (*TRAINING_SETTINGS, *_INPUT_SIZES):
                if name in self.given:
                    self.add_error(name, "is not known of an own script; leave it out")
        return cleaned

    @property
    def series(self) -> SeriesKey:
        values = self.cleaned_data
        where = {name: values[name] for name in ("memory_limit_bytes", "emulate_ranks")}
        if values["own_script"]:
            return SeriesKey(values["model"], values["gpu"], (), None, **where, is_own_script=True)
        given_size = next((values[name] for name in _INPUT_SIZES if values[name]), None)
        return SeriesKey(
            model=values["model"],
            gpu=values["gpu"],
            settings=tuple((name, values[name]) for name in TRAINING_SETTINGS),
            input_size=given_size or default_input_size(values["model"]),
            **where,
        )
