"""Which variants are tried follows from what one start showed; those that are not have a reason; and the command."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from engine.cli.tune_faster import spec_of
from engine.errors import SpecError
from engine.race.numbers import Numbers, Sameness
from engine.trainings.script.faster.answer import is_excused
from engine.trainings.script.faster.command import again_command, faster_command
from engine.trainings.script.faster.facts import Facts, Noted, Today, own_batch_size
from engine.trainings.script.faster.spec import OWN, OwnRaceSpec
from engine.trainings.script.faster.variants import BY_NAME, TORCH, VARIANTS
from engine.trainings.script.spec import FUNCTION, TuneSpec, function_command
from tests.engine.trainings.script.made_up_script import ADAM, MODEL
from tests.engine.trainings.script.test_evidence import reading, steps


def facts(
    kind: str = "cpu",
    *,
    model: Any = None,
    optimizer: Any = None,
    waiting: float = 0.5,
    cores: int = 4,
    **noted: Any,
) -> Facts:
    """What a training with a DataLoader without workers shows, with some of it changed."""
    found = {"loaders": [[0, False, False, True, 9]], "models": [MODEL | (model or {})], "framework": "torch"}
    found |= {"optimizers": [ADAM | (optimizer or {})], "kept_bytes": 0, "matmul_precision": "highest"}
    found |= {"cudnn_benchmark": False, "draws_random": False}
    today = Today(
        batch_size=4,
        samples_per_step=4,
        ranks=1,
        memory_bytes=1_000_000,
        step_seconds=1.0,
        waiting_fraction=waiting,
        loss_noise=0.0,
        cores=cores,
    )
    return Facts(Noted.of(found | noted), today, kind, "8.0" if kind == "cuda" else None)


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
        ("workers", {"loaders": [[0, False, False, False, 9]]}, "each worker yields every row"),
        ("workers", {"waiting": 0.01}, "only 1.0 % of a step"),
        ("workers", {"loaders": [[4, False, True, True, 9]]}, "4 workers on 4 cores"),
        ("fused", {"optimizer": {"is_fused": True}}, "it is set"),
        ("fused", {"optimizers": []}, "no optimizer"),
        ("fused", {"optimizer": {"can_be_fused": False}}, "Adam has no fused form"),
        ("channels-last", {}, "no convolution"),
        ("channels-last", {"model": {"any_convolutions": 4}}, "no convolution of images"),
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
    assert facts(loaders=[[workers, False, False, True, 9]], cores=cores).workers_to_try == to_try


def test_the_lines_are_those_of_the_framework_that_trains() -> None:
    found = facts("cuda", framework="transformers")
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
    made = "# where the script makes it: torch.optim.AdamW(..., fused=True)"
    assert lines[0] == f'TrainingArguments(..., optim="adamw_torch_fused")  {made}'
    assert lines[1] == "torch.optim.SGD(..., fused=True)  # given as Trainer(optimizers=...)"


def test_a_command_without_a_place_for_the_batch_size_trains_with_its_own() -> None:
    assert OwnRaceSpec(("python", "train.py"), batch=OWN, tried=("fused",)).to_dict()["tried"] == ("fused",)
    with pytest.raises(SpecError, match="holds no"):
        OwnRaceSpec(("python", "train.py"))
    with pytest.raises(SpecError, match="tried"):
        OwnRaceSpec(("python", "train.py"), batch=OWN, tried=("faster",))


def test_the_script_s_own_batch_size_is_read_from_what_its_model_was_given() -> None:
    assert own_batch_size(reading(steps(24), faster={"models": []})) == (24, False)


def test_convolutions_of_sound_and_of_volumes_have_kernels_to_choose_too() -> None:
    assert "cudnn-benchmark" in tried(facts("cuda", model={"any_convolutions": 4}))


def test_the_lines_for_a_trainer_say_what_else_they_set() -> None:
    on_cpu, on_gpu = (facts(kind, framework="transformers") for kind in ("cpu", "cuda"))
    assert BY_NAME["bf16"].lines_for(on_cpu) == "TrainingArguments(..., bf16=True, use_cpu=True)"
    assert BY_NAME["bf16"].lines_for(on_gpu) == "TrainingArguments(..., bf16=True)"
    assert "turns TF32 on" in BY_NAME["compile"].lines_for(on_gpu)
    assert "TF32" not in BY_NAME["compile"].lines_for(on_cpu)


def test_the_line_that_compiles_names_what_the_training_calls_and_keeps_the_names_in_checkpoints() -> None:
    parts = [MODEL | {"name": "Sequential", "held_as": name} for name in ("actor", "critic")]
    lines = [BY_NAME["compile"].lines_for(found) for found in (facts(), facts(models=parts), facts(model={"name": ""}))]
    assert lines == [
        "model.compile()  # the module that the training calls: Net",
        "model.compile()  # each module that the training calls: actor (Sequential), critic (Sequential)",
        "model.compile()",
    ]


def test_a_class_of_torchs_own_is_compiled_by_its_forward_as_its_compile_leaves_it_out() -> None:
    sequential = MODEL | {"name": "Sequential", "held_as": "critic", "is_of_torch": True}
    lines = [BY_NAME["compile"].lines_for(facts(models=each)) for each in ([sequential], [MODEL, sequential])]
    assert lines[0].startswith(
        "model.forward = torch.compile(model.forward)  # the module that the training calls: critic"
    )
    assert [line.partition("  #")[0] for line in lines[1].splitlines()] == [
        "model.compile()",
        "model.forward = torch.compile(model.forward)",
    ]


class Own(nn.Sequential):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return super().forward(rows)


class Named(nn.Sequential):
    pass


@pytest.mark.parametrize(("kind", "is_compiled"), [(nn.Sequential, False), (Named, False), (Own, True)])
def test_compile_of_a_class_of_torchs_own_compiles_nothing(kind: type[nn.Sequential], is_compiled: bool) -> None:
    """Where torch changes that, the shorter line does for both."""
    counted: list[Any] = []

    def backend(graph: Any, _: Any) -> Any:
        counted.append(graph)
        return graph.forward

    module = kind(nn.Linear(4, 4), nn.ReLU())
    module.compile(backend=backend)
    module(torch.ones(2, 4))
    assert bool(counted) is is_compiled


def test_lines_for_several_modules_name_them_as_each_of_them_was_set() -> None:
    parts = [MODEL | {"name": "Sequential", "held_as": name} for name in ("actor", "critic")]
    for name in ("bf16", "channels-last"):
        first = BY_NAME[name].lines_for(facts(models=parts)).splitlines()[0]
        assert first.endswith("  # each module that the training calls: actor (Sequential), critic (Sequential)")
        assert "#" not in BY_NAME[name].lines_for(facts()).splitlines()[0]


def test_a_cache_is_put_off_in_each_config_that_asks_for_it() -> None:
    lines = [
        BY_NAME["no-cache"].lines_for(facts(model={"uses_cache": True, "cached_by": by}))
        for by in ([], ["", "decoder"])
    ]
    assert lines == [
        "model.config.use_cache = False",
        "model.config.use_cache = False\nmodel.decoder.config.use_cache = False",
    ]


def test_what_needs_a_module_says_that_none_was_seen() -> None:
    found = facts("cuda", models=[])
    for name in ("bf16", "compile", "channels-last", "no-cache"):
        assert "no module was seen that trains: it is in evaluation mode" in (BY_NAME[name].why_not(found) or "")


def test_rows_that_are_drawn_elsewhere_excuse_workers_alone_and_no_loss_that_is_not_finite() -> None:
    found = facts(draws_random=True)
    differs, not_finite = Numbers(Sameness.DIFFERS, 0.1, 0.02), Numbers(Sameness.DIFFERS, None, 0.02)
    assert is_excused(("workers",), differs, found)
    assert is_excused(("workers",), Numbers(Sameness.UNKNOWN), found)
    assert not is_excused(("workers",), not_finite, found)
    assert not is_excused(("workers", "compile"), differs, found)


@pytest.mark.parametrize(
    ("sizes", "is_guessed"),
    [([32] * 4 + [7], False), ([64, 448] * 3, True), ([11, 12, 14, 15, 15], True), ([None] * 5, True)],
)
def test_a_batch_size_of_several_that_loaders_have_is_a_guess(sizes: list[int | None], is_guessed: bool) -> None:
    marks: list[list[Any]] = [[0.0, "memory_read"]]
    for now, size in enumerate(sizes):
        marks += [[now, "batch", True, [size or 9, 64], None, 0, None, size], [now, "step", 7]]
    assert own_batch_size(reading([], marks=marks, faster={"models": []}))[1] is is_guessed


def test_workers_are_tried_and_written_without_keeping_them_from_pass_to_pass() -> None:
    """What a data set is told by `set_epoch` would not reach the workers of an earlier pass."""
    lines = [BY_NAME["workers"].lines_for(facts(framework=name)) for name in ("torch", "transformers")]
    assert lines == ["DataLoader(..., num_workers=4)", "TrainingArguments(..., dataloader_num_workers=4)"]


def test_channels_last_has_no_line_for_batches_that_have_no_channels() -> None:
    channels = BY_NAME["channels-last"]
    one_by_one, of_trainer = facts(model={"takes_images": False}), facts(framework="transformers")
    assert len(channels.lines_for(facts()).splitlines()) == 2
    for each in (one_by_one, of_trainer):
        assert channels.lines_for(each) == "model = model.to(memory_format=torch.channels_last)"


def test_the_line_for_accelerate_says_what_else_its_precision_may_change() -> None:
    assert "what the script casts by that" in BY_NAME["bf16"].lines_for(facts(framework="accelerate"))


def test_expandable_segments_that_are_set_are_not_tried() -> None:
    assert BY_NAME["expandable"].why_not(facts("cuda", is_expandable=True)) == "it is set"


def test_dropout_on_a_gpu_draws_other_masks_in_bf16_but_a_loss_that_is_not_finite_is_no_other_draw() -> None:
    differs, not_finite = Numbers(Sameness.DIFFERS, 0.1, 0.02), Numbers(Sameness.DIFFERS, None, 0.02)
    found = facts("cuda", model={"draws": True})
    excused = [is_excused((name,), differs, found) for name in ("bf16", "channels-last", "fused")]
    assert excused == [True, True, False]
    assert not is_excused(("bf16",), not_finite, found)
    assert not is_excused(("bf16",), differs, facts("cuda"))


def test_dropout_explains_no_more_than_other_masks_change_the_losses_of_todays_training() -> None:
    def is_excused_at(mask_noise: float) -> bool:
        found = facts("cuda", model={"draws": True})
        found = replace(found, today=replace(found.today, mask_noise=mask_noise))
        return is_excused(("bf16",), Numbers(Sameness.DIFFERS, 0.1, 0.02), found)

    assert (is_excused_at(0.05), is_excused_at(0.01)) == (True, False)


def given(*calls: int, drawn: int | None = None, shapes: int = 4) -> Any:
    """Six steps in each of which the model is given these rows, out of a loader's batch of so many."""
    marks: list[list[Any]] = []
    for number in range(6):
        marks += [[number, "batch", True, [1, 64], None, [], 1_000, drawn]] if drawn else []
        marks += [[number, "forward", 1_000, [rows, shapes], None] for rows in calls]
        marks.append([number + 0.5, "step", 7])
    return reading([], marks=marks, faster={"models": [MODEL]})


@pytest.mark.parametrize(
    ("seen", "size", "is_guessed"),
    [
        (given(1, 1, 1, 128), 128, True),  # an agent that acts by one row at a time
        (given(128), 128, False),
        (given(64, drawn=1), 64, True),  # each row is a batch that was made before
        (given(0, drawn=32), 32, False),
        (given(8, 8, 8, 8, drawn=32), 32, True),  # the batch of a generation is trained in parts
        (given(35, drawn=20, shapes=20), 20, False),  # the batch is the second dimension
        (given(2_708, drawn=32), 32, False),  # the nodes of graphs
    ],
)
def test_what_the_model_was_given_tells_how_sure_the_batch_size_is(seen: Any, size: int, is_guessed: bool) -> None:
    assert own_batch_size(seen) == (size, is_guessed)


def test_a_gpu_s_own_settings_are_tried_where_no_model_was_seen() -> None:
    assert {"tf32", "cudnn-benchmark"} <= tried(facts("cuda", models=[]))


def test_fabric_compiles_a_model_that_was_compiled_before_it_was_set_up() -> None:
    lines = BY_NAME["compile"].lines_for(facts(framework="fabric"))
    assert lines.startswith("model = torch.compile(model)  # before fabric.setup(")
    assert BY_NAME["bf16"].lines_for(facts(framework="fabric")) == 'Fabric(..., precision="bf16-mixed")'


SCRIPT = ("python", "train.py")


@pytest.mark.parametrize("way", ["hf", "dataloader", "steps", "env"])
def test_a_way_that_is_named_is_kept_so_that_the_race_is_at_that_size(way: str) -> None:
    spec = TuneSpec(SCRIPT, batch=way, current_batch_size=64)
    said = faster_command(spec.to_dict())
    assert said == f"memorymark tune --faster --batch {way} --current-batch-size 64 -- python train.py"
    raced = spec_of(SimpleNamespace(batch=way, current_batch_size=64, tried=None), SCRIPT)
    assert (raced.command, raced.batch, raced.current_batch_size) == (spec.command, way, 64)


def test_a_config_file_keeps_its_own_size() -> None:
    spec = TuneSpec((*SCRIPT, "a.yaml"), batch="config", batch_in="a.yaml:batch")
    assert faster_command(spec.to_dict()) == "memorymark tune --faster -- python train.py a.yaml"


@pytest.mark.parametrize(
    "spec",
    [
        TuneSpec(function_command("package.module:make_step"), batch=FUNCTION),
        TuneSpec(("torchrun", "--nnodes", "2", "train.py", "{batch_size}")),
        TuneSpec(("accelerate", "launch", "--num_machines=2", "train.py", "{batch_size}")),
        TuneSpec(("torchrun", "--nproc-per-node=8", "train.py", "{batch_size}"), emulate_ranks=8),
    ],
)
def test_nothing_is_offered_for_a_function_for_several_hosts_and_for_emulated_ranks(spec: TuneSpec) -> None:
    assert faster_command(spec.to_dict()) == ""


def test_a_script_is_timed_again_with_the_limit_and_the_size_it_had() -> None:
    spec = TuneSpec(
        ("python", "train.py", "{batch_size}"), device="cpu", current_batch_size=4, memory_limit_bytes=2**28
    )
    said = "memorymark tune --report-to https://lab/ --device cpu --current-batch-size 4 --memory-limit 256MiB"
    assert again_command(spec.to_dict(), "https://lab/") == f"{said} -- python train.py '{{batch_size}}'"
