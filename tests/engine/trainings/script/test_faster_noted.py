"""What `tune --faster` notes of models, losses and outputs, and what it changes of them, in the process that trains."""

from collections import OrderedDict
from functools import partial
from types import SimpleNamespace
from typing import Any

import memorymark_models
import pytest
import torch
from memorymark_faster import Faster
from memorymark_tensors import Outputs
from torch import nn

from engine.measurement.torchvision_schemas import import_torchvision


def faster(*wanted: str) -> Any:
    """One start's record, with nothing of torch replaced."""
    settings = {"faster": {"set": dict.fromkeys(wanted, True), "is_trial": True}}
    steps = SimpleNamespace(optimizers=set(), counts={})
    return Faster(SimpleNamespace(settings=settings, steps=steps, has_begun=lambda: True), torch)


def run(made: Any, module: nn.Module, *inputs: Any, **options: Any) -> Any:
    """Run an outermost module, and return what was noted of it."""
    made.models.around(module, module, inputs, options)
    return made.seen()["models"][-1]


class Agent(nn.Module):
    """Two networks, which a training calls one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.critic, self.actor = nn.Sequential(nn.Linear(4, 1)), nn.Sequential(nn.Linear(4, 2))


def test_a_module_that_is_called_has_its_class_and_its_name_in_another() -> None:
    made, agent, alone = faster(), Agent(), nn.Linear(4, 1)
    for module in (agent.actor, agent.critic, alone, nn.Sequential(nn.Sequential(nn.Linear(4, 1)))[0]):
        run(made, module, torch.ones(2, 4))
    found = [(each["held_as"], each["name"]) for each in made.seen()["models"]]
    assert found == [("actor", "Sequential"), ("critic", "Sequential"), ("", "Linear"), ("", "Sequential")]


def test_a_torch_that_asks_for_autocast_without_the_device_is_asked_so() -> None:
    older: Any = SimpleNamespace(is_autocast_enabled=lambda: True, is_autocast_cpu_enabled=lambda: False)
    assert [memorymark_models._is_autocast(older, kind) for kind in ("cuda", "cpu")] == [True, False]


class LossOnMac:
    """A loss of 2 on a GPU that has no numbers of 64 bits."""

    device, dtype = SimpleNamespace(type="mps"), torch.float32

    def detach(self) -> Any:
        return self

    def to(self, dtype: torch.dtype) -> float:
        assert dtype is torch.float32
        return 2.0


def test_a_loss_is_noted_where_the_gpu_has_no_64_bits() -> None:
    made = faster()
    made.losses.note(LossOnMac())
    assert made.seen()["losses"] == [2.0]


class Cached(nn.Linear):
    """A model with a cache in its settings, which gives back `cache`."""

    def __init__(self, cache: Any) -> None:
        super().__init__(4, 4)
        self.config, self.cache = SimpleNamespace(use_cache=True), cache

    def forward(self, rows: torch.Tensor) -> Any:
        return SimpleNamespace(logits=super().forward(rows), past_key_values=self.cache)


@pytest.mark.parametrize(("cache", "is_used"), [(None, False), (["keys"], True)])
def test_a_cache_counts_where_the_model_gives_one_back_and_not_in_an_encoder(cache: Any, is_used: bool) -> None:
    assert run(faster(), Cached(cache), torch.ones(2, 4))["uses_cache"] is is_used


class Translator(nn.Module):
    """A model whose decoder has a copy of its settings, as T5's, and which shares its own with its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(use_cache=True)
        self.encoder, self.decoder = nn.Linear(4, 4), Cached(["keys"])
        self.layers = nn.ModuleList([nn.Linear(4, 4)])
        self.layers[0].config = self.config

    def forward(self, rows: torch.Tensor) -> Any:
        return self.decoder(self.encoder(rows))


def test_each_config_that_asks_for_a_cache_is_named_by_the_module_that_has_it() -> None:
    translator = Translator()
    assert run(faster(), translator, torch.ones(2, 4))["cached_by"] == ["", "decoder"]
    assert run(faster(), nn.Sequential(OrderedDict(module=translator)), torch.ones(2, 4))["cached_by"] == [
        "",
        "decoder",
    ]


def test_a_module_that_was_moved_after_its_first_pass_is_noted_where_it_trains() -> None:
    made, module = faster(), nn.Linear(4, 1)
    made.models.meet(module, "cpu", [torch.ones(2, 4)])
    made.models.meet(module, "cuda", [torch.ones(2, 4)])
    assert [each["device"] for each in made.models.noted] == ["cuda"]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_scripted_and_traced_modules_are_met() -> None:
    for module in (torch.jit.script(nn.Linear(4, 1)), torch.fx.symbolic_trace(nn.Linear(4, 1))):
        assert run(faster(), module, torch.ones(2, 4))["is_of_torch"] is False
    assert run(faster(), nn.Linear(4, 1), torch.ones(2, 4))["is_of_torch"] is True


class Detector(nn.Conv2d):
    """A model of a list of images of three dimensions, or of a dict with a batch; it keeps what it was given."""

    def forward(self, images: Any) -> torch.Tensor:
        self.given = images
        return super().forward(torch.stack(images) if isinstance(images, list) else images["pixels"])


def test_images_one_by_one_have_no_batch_with_channels_last() -> None:
    images = [torch.ones(3, 8, 8), torch.ones(3, 8, 8)]
    detector = Detector(3, 4, 3)
    assert run(faster("channels-last"), detector, images)["takes_images"] is False
    assert detector.given is images
    assert run(faster(), nn.Conv2d(3, 4, 3), torch.stack(images))["takes_images"] is True


def test_a_batch_in_a_dict_is_laid_out_with_the_channels_last() -> None:
    detector = Detector(3, 4, 3)
    batch = {"pixels": torch.ones(2, 3, 8, 8), "names": ["a", "b"]}
    assert run(faster("channels-last"), detector, batch)["takes_images"] is True
    assert detector.given["pixels"].is_contiguous(memory_format=torch.channels_last)
    assert detector.given["names"] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "is_sure"),
    [
        (torch.ones(16, 4), True),
        (torch.ones(16, 3, 8, 8), True),
        (torch.ones(4), False),
        (torch.ones(35, 20, dtype=torch.long), False),
        (torch.ones(35, 20, 8), False),
    ],
)
def test_only_tables_and_images_tell_the_batch_size_by_their_first_dimension(given: Any, is_sure: bool) -> None:
    class Anything(nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.weight.sum() * rows.float().mean()

    assert run(faster(), Anything(4, 1), given)["begins_with_rows"] is is_sure


@pytest.mark.parametrize("name", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_expandable_segments_are_seen_in_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faster().seen()["is_expandable"] is False
    monkeypatch.setenv(name, "max_split_size_mb:64,expandable_segments:True")
    assert faster().seen()["is_expandable"] is True


def test_an_output_is_freed_with_the_view_that_the_script_made_of_all_of_it_and_not_with_a_part() -> None:
    outputs, weight = Outputs(torch), torch.ones(4, requires_grad=True)
    output = weight * torch.ones(8, 4)
    other = weight * torch.ones(8, 4)
    reshaped, part, state = output.view(-1), other[:1], other.detach()
    outputs.give([output, other])
    outputs.gone_back()
    del output, other
    assert outputs.free() is True
    assert outputs.kept_bytes == 2 * 8 * 4 * 4
    assert reshaped.numel() == 0
    assert (part.sum().item(), state.sum().item()) == (4.0, 32.0)


def test_a_weight_that_a_model_gives_back_is_neither_counted_nor_freed() -> None:
    outputs, weight = Outputs(torch), nn.Parameter(torch.ones(8, 4))
    part = weight[:2]
    outputs.give([weight, part])
    outputs.gone_back()
    assert (outputs.free(), outputs.kept_bytes) == (False, 0)
    assert (weight.sum().item(), part.sum().item()) == (32.0, 8.0)


class Task(nn.Module):
    """What timm calls in place of its model: it makes its own tensors where it is moved."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Conv2d(3, 4, 3)

    def to(self, *arguments: Any, **options: Any) -> Any:
        torch.empty(0).to(*arguments, **options)
        return super().to(*arguments, **options)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.model(images)


def test_a_class_with_a_move_of_its_own_is_laid_out_with_the_channels_last() -> None:
    task = Task()
    run(faster("channels-last"), task, torch.ones(2, 3, 8, 8))
    assert task.model.weight.is_contiguous(memory_format=torch.channels_last)


def test_what_fabric_wraps_keeps_its_own_forward_when_the_wrapper_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    import_torchvision()  # which Lightning needs
    monkeypatch.setattr(torch, "compile", partial)
    wrappers = pytest.importorskip("lightning.fabric.wrappers")
    module = nn.Linear(4, 1)
    wrapped = wrappers._FabricModule(module, SimpleNamespace(), original_module=module)
    made = faster("compile")
    made.settings["is_trial"] = False
    made.models.change(wrapped, [], [])
    assert ("forward" in vars(wrapped), "forward" in vars(module)) == (True, False)
    assert made.seen()["framework"] == "fabric"
