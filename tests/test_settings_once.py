"""A setting of the training is declared once, in `engine.settings`, and then offered, filtered and shown everywhere."""

import re
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError

from analysis.api.result_schema import spec_properties
from analysis.api.run_bodies import run_schema
from analysis.lists.comparison.differences import setting_rows
from analysis.lists.matrix.query import MatrixForm
from analysis.lists.runs.export import FIELDS
from analysis.lists.trend.query import TrendForm
from analysis.pages.home.forms import RunForm
from analysis.presentation.labels import describe_settings
from analysis.runs.columns.matrix_cells import settings_key
from engine.cli.options import setting_options, start_options
from engine.estimate.spec import SETTINGS as OF_ESTIMATES
from engine.settings.rank_settings import OF_STARTS
from engine.settings.spec import DEFAULTS, RANGES, SETTINGS, TRAINING_SETTINGS, VALUE_TYPES, RunSpec
from tests.factories import make_spec
from tests.factories.results import result, subject

RARER = [name for name in TRAINING_SETTINGS if name not in ("precision", "optimizer")]


def changed_value(name: str) -> object:
    if choices := SETTINGS[name].choices:
        return next(value for value in choices if value != DEFAULTS[name])
    return True if VALUE_TYPES[name] is bool else RANGES[name][1]


@pytest.mark.parametrize("name", TRAINING_SETTINGS)
def test_a_setting_is_an_option_a_field_a_filter_a_column_and_a_row(name: str) -> None:
    assert name in [option.name for option in setting_options(RunSpec)]
    assert (name in RunForm.base_fields) == SETTINGS[name].is_in_form
    assert name in MatrixForm.base_fields
    assert name in TrendForm.base_fields
    assert name in FIELDS
    assert spec_properties()[name]["description"] == SETTINGS[name].description
    assert SETTINGS[name].label in [row.name for row in setting_rows([subject(1)])]


@pytest.mark.parametrize("name", RARER)
def test_a_setting_that_is_no_default_is_named_beside_a_run_and_keeps_its_cell_apart(name: str) -> None:
    changed = changed_value(name)
    spec = {**make_spec().to_dict(), name: changed}
    assert any(SETTINGS[name].label.lower() in text.lower() for text in describe_settings(spec))
    assert settings_key(spec) == f"{name}={changed}"


def test_a_comparison_shows_the_values_as_the_form_does() -> None:
    spec = make_spec(optimizer="adamw-8bit", outputs="released", gradient_checkpointing=True)
    rows = {row.name: row.values for row in setting_rows([subject(1), subject(2, result(spec=spec))])}
    assert rows["Optimizer"] == ("AdamW", "AdamW, 8-bit state")
    assert rows["Outputs"] == tuple(SETTINGS["outputs"].text_of(value) for value in ("kept", "released"))
    assert rows["Gradient checkpointing"] == ("off", "on")


@pytest.mark.parametrize("name", OF_ESTIMATES)
def test_what_a_request_of_an_estimate_has_beside_the_training_is_described_in_one_place(name: str) -> None:
    each = OF_ESTIMATES[name]
    assert run_schema()["properties"][name]["description"] == each.description
    if name in RunForm.base_fields:
        assert RunForm.base_fields[name].label == each.label


@pytest.mark.parametrize("name", OF_STARTS)
def test_what_a_request_of_several_ranks_has_beside_the_training_is_described_in_one_place(name: str) -> None:
    each = OF_STARTS[name]
    assert run_schema()["properties"][name]["description"] == each.description
    if name in RunForm.base_fields:  # the form has a button for the comparison of speeds
        assert RunForm.base_fields[name].label == each.label
    assert name in [option.name for option in start_options(is_usual=True)]


def test_fields_of_a_forms_class_are_declared_by_the_function_for_it() -> None:
    written = [
        path
        for path in (Path(__file__).parents[1] / "analysis").rglob("*.py")
        if re.search(r"vars\(\)(\[|\.)", path.read_text())
    ]
    assert written == []


def test_a_setting_that_takes_names_suggests_its_words_and_takes_both() -> None:
    field = RunForm.base_fields["lora_targets"]
    assert [field.clean(value) for value in ("attention", "q_proj,v_proj")] == ["attention", "q_proj,v_proj"]
    with pytest.raises(ValidationError, match="must be one of all-linear, attention, query-value, or names of layers"):
        field.clean("q_proj;v_proj")
    written = field.widget.render("lora_targets", "attention", {"id": "id_lora_targets"})
    assert 'list="id_lora_targets_offered"' in written
    assert '<datalist id="id_lora_targets_offered"><option value="all-linear">' in written
    assert re.fullmatch(spec_properties()["lora_targets"]["pattern"], "all-linear")
