"""The query string of a trend: which series it names."""

from __future__ import annotations

from django import forms

from analysis.http.query_string import StrictQueryForm, WholeNumberField
from analysis.pages.setting_fields import setting_field
from analysis.runs.series import SeriesKey, default_input_size
from engine.spec import SETTINGS, TRAINING_SETTINGS


class TrendForm(StrictQueryForm):
    """`?model=bert&gpu=A100&...`: a setting that is left out has the default of a new run."""

    # no choice of those on offer: the runs of a model that is gone still have their trend
    model = forms.CharField(label="", help_text=SETTINGS["model"].description)
    gpu = forms.CharField(label="", help_text="`device_name` of the runs.")
    vars().update(
        {name: setting_field(name, label="", help_text=SETTINGS[name].description) for name in TRAINING_SETTINGS}
    )
    input_size = WholeNumberField(
        label="", required=False, help_text="Tokens, or the side of the image in pixels. Default: the model's."
    )
    memory_limit_bytes = WholeNumberField(
        label="", required=False, help_text="Memory limit of the runs. Default: no limit."
    )

    @property
    def series(self) -> SeriesKey:
        """The series that a valid form names."""
        values = self.cleaned_data
        return SeriesKey(
            model=values["model"],
            gpu=values["gpu"],
            settings=tuple((name, values[name]) for name in TRAINING_SETTINGS),
            input_size=values["input_size"] or default_input_size(values["model"]),
            memory_limit_bytes=values["memory_limit_bytes"],
        )
