"""Which variants are tried follows from what one start showed, and those that are not have a reason."""

from dataclasses import replace
from typing import Any

import pytest

from engine.errors import SpecError
from engine.tune.faster.facts import Facts, Noted, own_batch_size
from engine.tune.faster.spec import OWN, OwnRaceSpec
from engine.tune.faster.variants import BY_NAME, TORCH, VARIANTS
from tests.engine.tune.made_up_script import ADAM, MODEL
from tests.engine.tune.test_evidence import reading, steps


def facts(kind: str = "cpu", *, model: Any = None, optimizer: Any = None, waiting: float = 0.5, **noted: Any) -> Facts:
    """What a training with a DataLoader without workers shows, with some of it changed."""
    found = {"loaders": [[0, False, False, True, 9]], "models": [MODEL | (model or {})], "framework": "torch"}
    found |= {"optimizers": [ADAM | (optimizer or {})], "kept_bytes": 0, "matmul_precision": "highest"}
    found |= {"cudnn_benchmark": False, "draws_random": False}
    return Facts(Noted.of(found | noted), kind, (8, 0) if kind == "cuda" else None, 4, 1_000_000, waiting)


def tried(found: Facts) -> set[str]:
    return {each.name for each in VARIANTS if each.why_not(found) is None}


def test_a_model_in_64_bits_is_tried_in_32_and_not_in_16():
    found = tried(facts(model={"dtypes": ["float64"]}))
    assert ("fp32" in found, "bf16" in found) == (True, False)


def test_on_a_cpu_nothing_of_a_gpu_is_tried() -> None:
    assert tried(facts()) == {"workers", "fused", "foreach", "compile", "bf16"}
    assert "no cuDNN" in (BY_NAME["cudnn-benchmark"].why_not(facts()) or "")


def test_on_a_gpu_all_that_applies_is_tried() -> None:
    found = facts("cuda", model={"convolutions": 3, "uses_cache": True}, kept_bytes=500_000)
    assert tried(found) == {each.name for each in VARIANTS} - {"foreach", "fp32"}


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        ("workers", {"loaders": []}, "no DataLoader was seen"),
        ("workers", {"loaders": [[0, False, False, False, 9]]}, "each worker would give all of them"),
        ("workers", {"waiting": 0.01}, "only 1.0 % of a step"),
        ("workers", {"loaders": [[4, False, True, True, 9]]}, "4 workers on 4 cores"),
        ("fused", {"optimizer": {"is_fused": True}}, "it is set"),
        ("fused", {"optimizers": []}, "no optimizer"),
        ("fused", {"optimizer": {"can_be_fused": False}}, "Adam has no fused form"),
        ("channels-last", {}, "no convolution"),
        ("compile", {"model": {"is_compiled": True}}, "it is compiled"),
        ("compile", {"models": []}, "no module was seen"),
        ("bf16", {"model": {"is_autocast": True}}, "uses autocast"),
        ("bf16", {"model": {"dtypes": ["bfloat16"]}}, "are in bfloat16"),
        ("fp32", {}, "no parameter is in 64 bits"),
        ("release-outputs", {"kept_bytes": 500_000, "models": [MODEL, MODEL]}, "more than one model"),
    ],
)
def test_what_does_not_apply_is_left_out_with_its_reason(name: str, changed: dict[str, Any], reason: str) -> None:
    assert reason in (BY_NAME[name].why_not(facts(**changed)) or "")


@pytest.mark.parametrize(("workers", "cores", "to_try"), [(0, 1, 2), (0, 2, 2), (1, 4, 4), (0, 64, 8), (8, 64, 16)])
def test_as_many_workers_as_cores_are_tried_up_to_eight_or_twice_today_s(workers: int, cores: int, to_try: int) -> None:
    assert replace(facts(loaders=[[workers, False, False, True, 9]]), cores=cores).workers_to_try == to_try


def test_the_lines_are_those_of_the_framework_that_trains() -> None:
    found = facts(framework="transformers")
    assert BY_NAME["bf16"].lines_for(found) == "TrainingArguments(..., bf16=True)"
    assert BY_NAME["fused"].lines_for(facts()) == "torch.optim.Adam(..., fused=True)"
    assert BY_NAME["tf32"].lines_for(facts(framework="pytorch_lightning")).startswith("torch.set_float32")
    assert all(TORCH in each.lines for each in VARIANTS)


def test_the_line_of_an_optimizer_names_those_that_have_the_form_as_the_script_makes_them() -> None:
    muon = ADAM | {"name": "Muon", "can_be_fused": False, "can_be_foreach": False}
    of_its_own, sgd = ADAM | {"name": "OurAdam"}, ADAM | {"name": "SGD"}
    fused = BY_NAME["fused"]
    assert fused.lines_for(facts(optimizers=[muon, ADAM])) == "torch.optim.Adam(..., fused=True)"
    assert fused.lines_for(facts(optimizers=[of_its_own])) == "OurAdam(..., fused=True)"
    assert fused.lines_for(facts(optimizers=[sgd, ADAM, ADAM])).splitlines() == [
        "torch.optim.SGD(..., fused=True)",
        "torch.optim.Adam(..., fused=True)",
    ]


def test_a_trainer_of_transformers_is_given_a_fused_optimizer_of_the_kind_that_it_has() -> None:
    adamw, sgd = ADAM | {"name": "AdamW"}, ADAM | {"name": "SGD"}
    lines = [BY_NAME["fused"].lines_for(facts(framework="transformers", optimizers=[each])) for each in (adamw, sgd)]
    assert lines[0] == 'TrainingArguments(..., optim="adamw_torch_fused")'
    assert lines[1] == "torch.optim.SGD(..., fused=True)  # given as Trainer(optimizers=...)"


def test_a_command_without_a_place_for_the_batch_size_trains_with_its_own() -> None:
    assert OwnRaceSpec(("python", "train.py"), batch=OWN, tried=("fused",)).to_dict()["tried"] == ("fused",)
    with pytest.raises(SpecError, match="holds no"):
        OwnRaceSpec(("python", "train.py"))
    with pytest.raises(SpecError, match="try"):
        OwnRaceSpec(("python", "train.py"), batch=OWN, tried=("faster",))


def test_the_script_s_own_batch_size_is_read_from_what_its_model_was_given() -> None:
    assert own_batch_size(reading(steps(24))) == 24
