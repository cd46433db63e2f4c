"""Profiles hold declared settings with values that are offered, and what the installed libraries have by default."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.describe.commands import describe_like, measure_command
from engine.errors import SpecError
from engine.estimate.gpus import find as find_gpu
from engine.estimate.predict import check
from engine.estimate.spec import EstimateSpec
from engine.questions.size import measure
from engine.settings.catalog import WORKLOADS
from engine.settings.profiles import PROFILES, find
from engine.settings.spec import DEFAULTS, SETTINGS, TRAINING_SETTINGS, RunSpec
from tests.engine.fake_worker import FakeWorker


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_holds_declared_settings_of_a_training_and_a_spec_takes_them(name: str) -> None:
    profile = find(name)
    assert set(profile.settings) <= set(TRAINING_SETTINGS)
    spec = RunSpec.from_dict({"model": "llama-3.2-1b", "like": name})
    assert {setting: getattr(spec, setting) for setting in profile.settings} == dict(profile.settings)
    for setting, value in profile.settings.items():
        if value != DEFAULTS[setting]:
            assert SETTINGS[setting].describe(value) in describe_like(name)
    assert profile.origin in describe_like(name)


@pytest.mark.parametrize("name", PROFILES)
def test_what_is_given_wins_over_the_profile(name: str) -> None:
    given = {"model": "llama-3.2-1b", "precision": "fp16", "optimizer": "sgd"}
    spec = RunSpec.from_dict({**given, "like": name})
    assert (spec.precision, spec.optimizer) == ("fp16", "sgd")


def test_settings_that_a_model_does_not_have_are_left_out_where_the_profile_can_do_without() -> None:
    spec = RunSpec.from_dict({"model": "bert", "like": "hf-trainer"})
    assert (spec.without_cache, spec.optimizer, spec.clip_grad_norm) == (False, "adamw-fused", True)


def test_a_loss_in_a_number_of_chunks_follows_the_length() -> None:
    for length, tokens in ((2048, 256), (100, 13)):
        given = {"model": "llama-3.2-1b", "sequence_length": length, "like": "torchtune-lora"}
        assert RunSpec.from_dict(given).loss_chunk_tokens == tokens


def test_a_stored_estimate_keeps_its_settings_and_the_name_of_the_profile() -> None:
    spec = EstimateSpec.from_dict({"model": "llama-3.2-1b", "gpu": "a10", "like": "torchtune-lora", "lora_rank": 64})
    assert (spec.training.like, spec.training.lora_rank, spec.training.outputs) == ("torchtune-lora", 64, "released")
    assert EstimateSpec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize(
    ("model", "name", "why"),
    [
        ("llama-3.2-1b", "litgpt", "did you mean litgpt-lora"),
        ("llama-3.2-1b", "unsloth", "unsloth is not offered: its own kernels"),
        ("bert", "litgpt-lora", "litgpt-lora has loss_chunk_tokens, and bert is no language model"),
        ("resnet18", "torchtune-lora", "torchtune-lora has "),
    ],
)
def test_a_profile_that_cannot_hold_is_refused_with_what_helps(model: str, name: str, why: str) -> None:
    with pytest.raises(SpecError, match=f"like: .*{why}"):
        EstimateSpec.from_dict({"model": model, "gpu": "a10", "like": name})


def test_the_command_line_lists_every_profile_with_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "profiles"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{name}: {each.label}" in shown and each.version in shown for name, each in PROFILES.items())


SOURCES = {
    ("transformers", "training_args.py"): (
        r'default_optim = "adamw_torch_fused"',
        r"max_grad_norm: float = field\(\s*default=1\.0",
        r"use_cache: bool = field\(\s*default=False",
        r"\bbf16: bool = field\(\s*default=False",
        r"gradient_accumulation_steps: int = field\(\s*default=1",
    ),
    ("transformers", "trainer.py"): (r"return \(loss, outputs\) if return_outputs else loss",),
    ("lightning", "pytorch/trainer/trainer.py"): (
        r"precision: Optional\[_PRECISION_INPUT\] = None",
        r"accumulate_grad_batches: int = 1",
        r"gradient_clip_val: .* = None",
    ),
    ("lightning", "pytorch/trainer/connectors/accelerator_connector.py"): (r'"32-true" if precision_flag is None',),
}
"""What the profiles of the installed libraries were read from."""


@pytest.mark.parametrize(("library", "path"), SOURCES)
def test_the_profiles_of_installed_libraries_are_what_their_sources_say(library: str, path: str) -> None:
    found = find_spec(library)
    assert found is not None
    assert found.origin is not None
    text = (Path(found.origin).parent / path).read_text()
    for default in SOURCES[library, path]:
        assert re.search(default, text), f"{library} has another default than {default!r}: read its profile again"


def test_every_model_can_be_trained_as_by_the_trainer_or_says_why_not() -> None:
    for model in WORKLOADS:
        assert RunSpec.from_dict({"model": model, "like": "hf-trainer"}).outputs == "released"


class WithoutBitsandbytes(FakeWorker):
    """Opens no session of a model in 4 bits."""

    def open(self) -> None:
        raise SpecError("load_in_4bit", "bitsandbytes does not run on mps")


def test_a_device_that_cannot_do_what_a_profile_has_refuses_it_in_the_profiles_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = RunSpec.from_dict({"model": "llama-3.2-1b", "like": "hf-trainer", "precision": "tf32"})
    with pytest.raises(SpecError, match=r"^precision: "):
        check(given, find_gpu("t4"))
    with pytest.raises(SpecError, match=r"^like: litgpt-qlora has load_in_4bit, and .*; leave the profile out"):
        measure(RunSpec.from_dict({"model": "llama-3.2-1b", "like": "litgpt-qlora"}), worker=WithoutBitsandbytes(1))
    assert main(["measure", "bert", "cpu", "--like", "litgpt-lora"]) == SpecError.exit_status
    assert "--like: litgpt-lora has --loss-chunk-tokens" in capsys.readouterr().err


def test_the_command_that_measures_an_estimated_profile_names_every_setting_in_place_of_it() -> None:
    spec = RunSpec.from_dict({"model": "gpt2-lm", "like": "hf-trainer", "outputs": "kept"})
    command = measure_command(spec.to_dict())
    assert command.endswith("measure gpt2-lm --optimizer adamw-fused --clip-grad-norm --without-cache")
