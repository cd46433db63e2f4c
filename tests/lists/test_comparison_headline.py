"""What differs between runs, how they scale, and the comparison in one sentence: only what is sure is said."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import pytest

from analysis.lists.comparison.compared_run import ComparedRun, compared_run_of
from analysis.lists.comparison.differences import environment_rows, mismatches, setting_rows
from analysis.lists.comparison.headline import compare_headline
from analysis.lists.comparison.metrics import Cell, metric_rows
from analysis.lists.comparison.scaling import figure_rows
from analysis.lists.environment import NOT_RECORDED, changed, environment_facts
from analysis.models import Run
from engine.describe.result import WORDS_MOST
from engine.facts.result import RunResult
from engine.text.units import GIB
from tests.factories import make_spec
from tests.factories.results import CARD, ENVIRONMENT, estimate, result, subject
from tests.factories.speeds import make_unmeasurable_result
from tests.lists.test_comparison_metrics import timed


def headline(*results: RunResult, models: Sequence[str] = ()) -> str:
    named = zip_longest(results, models, fillvalue="bert-tiny")
    subjects = [subject(number, one, model=model) for number, (one, model) in enumerate(named, start=1)]
    said = compare_headline(subjects, subjects[0], metric_rows(subjects, subjects[0]))
    assert len(said.split()) <= WORDS_MOST
    return said


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ((result(8), result(12)), "Run 2 is 1.04x as fast as run 1; run 2 fits the most, 12 against 8."),
        ((result(8, speed=100.0), result(8, speed=300.0)), "Run 2 is 3.00x as fast as run 1; both fit 8."),
        ((result(12, speed=300.0), result(8, speed=100.0)), "Run 1 is the fastest; run 1 fits the most, 12."),
        ((result(8, speed=100.0), result(8, speed=101.0), result(8, speed=100.0)), "All fit 8."),
        ((make_unmeasurable_result(), make_unmeasurable_result()), "Both fit 8."),
    ],
)
def test_a_comparison_is_told_in_one_sentence(results: tuple[RunResult, ...], said: str) -> None:
    assert headline(*results) == said


def test_runs_that_differ_in_one_setting_are_called_by_it() -> None:
    answers = [replace(result(size), spec=make_spec(optimizer=name)) for size, name in ((8, "adamw"), (12, "sgd"))]
    assert headline(*answers) == "SGD is 1.04x as fast as AdamW; SGD fits 12, AdamW 8."
    both = replace(result(12), spec=make_spec(precision="bf16", optimizer="sgd"))
    assert headline(replace(result(8), spec=make_spec()), both).startswith("Run 2 is")


def test_of_different_models_it_names_them() -> None:
    said = headline(result(8), result(12), models=("bert", "gpt2"))
    assert said == "BERT base on A100-SXM4-40GB and GPT-2 small on A100-SXM4-40GB"


ALONE = timed(96, 100, 104)


def on_ranks(ranks: int, low: float, value: float, high: float, **settings: Any) -> ComparedRun:
    trained = make_spec(**settings).to_dict() | {"ranks": ranks, "strategy": "ddp"}
    spec = {"command": ["python"], "model": "bert-tiny, ddp", "catalogue": trained}
    found = timed(low, value, high, spec=spec)
    assert found.outcome is not None
    return replace(found, outcome=replace(found.outcome, ranks=ranks))


def shares(*subjects: ComparedRun) -> list[Cell]:
    rows = figure_rows(subjects, subjects[0])
    return next((list(row.cells) for row in rows if row.key == "scaling_efficiency"), [])


def test_without_a_run_of_several_gpus_there_is_no_such_row() -> None:
    assert shares(ALONE, timed(90, 95, 99)) == []


def test_the_efficiency_is_the_speed_of_each_gpu_beside_one_alone_with_the_widest_interval() -> None:
    alone, several = shares(ALONE, on_ranks(2, 150, 160, 170))
    assert (alone.value, alone.text) == (None, "–")
    assert several.interval == pytest.approx((75 / 104, 85 / 96))
    assert several.text == "72 to 89 %"


def test_another_training_alone_says_nothing_of_how_this_one_scales() -> None:
    assert shares(ALONE, on_ranks(2, 150, 160, 170, precision="bf16"))[1].value is None


def test_without_one_gpu_alone_no_efficiency_is_claimed() -> None:
    found = shares(on_ranks(2, 150, 160, 170), on_ranks(4, 300, 320, 340))
    assert [cell.text for cell in found] == ["not measured"] * 2


def test_runs_of_one_environment_have_no_mismatch() -> None:
    assert mismatches([subject(1), subject(2)]) == {}


def test_each_weighty_difference_is_said_with_the_runs_that_have_it() -> None:
    other = result(environment={"torch": "2.12.1"})
    found = mismatches([subject(3), subject(8), subject(9, other)])
    assert found == {"torch": "2.13.0 (runs 3, 8) · 2.12.1 (run 9)"}


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Device", result(card=replace(CARD, name="NVIDIA H100"))),
        ("Driver", result(card=replace(CARD, driver="575.51"))),
        ("CUDA", result(environment={"cuda": "12.8"})),
        ("transformers", result(environment={"transformers": "5.22.0"})),
        ("Allocator settings", result(environment={"allocator_settings": "expandable_segments:True"})),
        ("Shared device", result(card=replace(CARD, foreign_used_bytes=GIB))),
    ],
)
def test_what_may_move_the_figures_is_a_mismatch(name: str, other: object) -> None:
    assert list(mismatches([subject(1), subject(2, other)])) == [name]


def test_carried_over_probes_are_a_mismatch() -> None:
    plain = subject(1)
    resumed = compared_run_of(replace_pk(plain.run, 2), carried_probes=3)
    assert mismatches([plain, resumed]) == {"Carried-over probes": "none (run 1) · 3 (run 2)"}


def replace_pk(run: Run, number: int) -> Run:
    return Run(pk=number, state=run.state, model=run.model, spec=run.spec, result=run.result)


def test_an_estimate_has_no_driver_to_differ_in() -> None:
    guess = compared_run_of(Run(pk=2, kind="estimate", state="finished", spec=make_spec().to_dict(), result=estimate()))
    assert mismatches([subject(1), guess]) == {}


def test_only_settings_that_differ_differ() -> None:
    other = result(spec=make_spec(precision="bf16", memory_limit_bytes=2**30))
    rows = {row.name: row for row in setting_rows([subject(1, result(spec=make_spec())), subject(2, other)])}
    assert [name for name, row in rows.items() if row.differs] == ["Precision", "Memory limit"]
    assert rows["Memory limit"].values == ("none", "1 GiB")


def test_a_setting_this_version_does_not_know_is_compared_as_well() -> None:
    later = subject(2)
    later.run.spec["sparsity"] = "half"
    row = next(row for row in setting_rows([subject(1), later]) if row.name == "Sparsity")
    assert row.values == ("default", "half")


def test_what_was_not_recorded_is_no_difference() -> None:
    waiting = compared_run_of(Run(pk=2, state="queued", model="bert-tiny", spec=make_spec().to_dict()))
    assert [row.name for row in environment_rows([subject(1), waiting]) if row.differs] == []


def test_a_change_names_both_sides_the_weighty_ones_first() -> None:
    before = environment_facts(CARD, {**ENVIRONMENT, "python": "3.11"})
    after = environment_facts(replace(CARD, driver="590.1"), {**ENVIRONMENT, "python": "3.12"})
    assert changed(before, after) == [("Driver", "580.65", "590.1"), ("Python", "3.11", "3.12")]


def test_what_is_new_with_each_run_is_no_difference() -> None:
    first, second = (
        environment_facts(CARD, {"torch": "2.13.0", "run_key": key * 32, "slurm_job_id": key, "slurm_partition": "gpu"})
        for key in "ab"
    )
    assert changed(first, second) == []
    assert first["Slurm partition"] == "gpu"


def script(number: int, *words: str, environment: dict[str, str] | None = None) -> ComparedRun:
    limits = {"current_batch_size": 4, "reserve_fraction": make_spec().reserve_fraction}
    spec = {"command": ["python", "train.py", *words], "name": "train", **limits}
    return subject(number, result(environment=environment), kind="command", model="train", spec=spec)


def test_scripts_are_compared_by_their_command_and_not_by_settings_that_nobody_knows() -> None:
    rows = {row.name: row for row in setting_rows([script(1, "--lr", "1"), script(2, "--lr", "2", "--name", "a b")])}
    assert rows["Command"].values == ("python train.py --lr 1", "python train.py --lr 2 --name 'a b'")
    assert rows["Model"].values == ("train", "train")
    assert set(rows["Precision"].values) == set(rows["Input"].values) == {NOT_RECORDED}
    assert [name for name, row in rows.items() if row.differs] == ["Command"]
    assert "Name" not in rows


def test_a_script_beside_a_model_of_the_catalogue_differs_in_the_model_alone() -> None:
    rows = setting_rows([subject(1), script(2)])
    assert [row.name for row in rows if row.differs] == ["Model"]


def test_what_a_script_did_not_record_is_no_mismatch() -> None:
    silent = script(2)
    silent.facts.update({"CUDA": NOT_RECORDED})
    assert mismatches([subject(1), silent]) == {}
