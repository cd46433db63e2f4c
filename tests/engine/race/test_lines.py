"""The lines to paste do what was measured; what is said of losses and money is no more than is known."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from engine.facts.savings import savings_assuming
from engine.measurement.torchvision_schemas import import_torchvision
from engine.race.lines import ACCELERATE, LIGHTNING, TORCH, TRAINER, lines_of
from engine.race.numbers import Sameness, compare_numbers
from engine.race.text import describe_basis, describe_saving
from engine.race.variants import CHANGES
from engine.settings.catalog import WORKLOADS
from engine.settings.spec import RunSpec


def lines(name: str, library: str, model: str = "gpt2", device: str = "cuda", **settings: Any) -> tuple[str, ...]:
    found = lines_of((name,), RunSpec(model, **settings), device)
    return next(each.lines for each in found if each.library == library)


@pytest.mark.parametrize("model", ["gpt2", "resnet", "t5-small", "deeplabv3-resnet50"])
def test_each_change_has_lines_in_plain_torch_for_every_kind_of_model(model: str) -> None:
    assert model in WORKLOADS
    assert all(lines(name, TORCH, model) for name in CHANGES)


def test_the_cache_of_a_decoder_beside_an_encoder_is_put_off_in_its_own_settings() -> None:
    assert lines("no-cache", TORCH, "t5-small")[1:] == ("model.get_decoder().config.use_cache = False",)
    assert lines("no-cache", TRAINER, "t5-small") == ("model.get_decoder().config.use_cache = False",)
    assert lines("no-cache", TRAINER, "gpt2") == ()


def test_blocks_are_checkpointed_one_by_one_where_the_library_does_not() -> None:
    for library in (TORCH, TRAINER, LIGHTNING, ACCELERATE):
        assert (
            lines("checkpointing", library, "resnet")[0] == "for block in blocks:  # each repeated block of the model"
        )
    assert lines("checkpointing", TRAINER, "gpt2") == ("gradient_checkpointing=True,",)


def test_a_trainer_on_a_cpu_is_told_so_as_it_refuses_bf16_otherwise() -> None:
    assert lines("bf16", TRAINER, device="cpu") == ("bf16=True,", "use_cpu=True,")
    assert lines("bf16", TRAINER) == ("bf16=True,",)


def test_compiling_by_a_trainer_leaves_the_precision_as_it_was_raced() -> None:
    assert lines("compile", TRAINER, precision="fp32") == ("torch_compile=True,", "tf32=False,")
    assert lines("compile", TRAINER, precision="bf16") == ("torch_compile=True,",)
    both = lines_of(("compile", "tf32"), RunSpec("gpt2", precision="fp32"), "cuda")
    assert next(each.lines for each in both if each.library == TRAINER) == ("torch_compile=True,", "tf32=True,")


@pytest.mark.filterwarnings("ignore")  # Lightning and what it uses
@pytest.mark.parametrize("accumulated", [1, 2])
def test_lightning_holds_no_gradients_in_the_forward_pass_with_the_lines(accumulated: int) -> None:
    import_torchvision()
    import lightning.pytorch as lightning

    written = "\n".join(f"    {line}" for line in lines("zero-grad", LIGHTNING))
    space: dict[str, Any] = {}
    exec(f"class Freed:\n{written}".replace("super()", "super(Freed, self)"), space)
    held: list[bool] = []

    class Model(space["Freed"], lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            held.append(self.layer.weight.grad is not None)
            return self.layer(batch).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        accumulate_grad_batches=accumulated,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(6, 4), batch_size=1))
    assert held == [number % accumulated != 0 for number in range(6)]


ASSUMED = {"price_per_hour_usd": 0.6, "hours_per_run": 2.0, "runs_per_year": 100}


@pytest.mark.parametrize(
    ("speedup", "low", "said"),
    [
        (1.0355, 1.0018, "$4.11 [$0.21, $7.60]"),
        (None, 1.0018, "at least $0.21"),
        (1.0355, 1.00001, ""),
        (None, None, ""),
    ],
)
def test_a_saving_has_the_ends_of_its_interval_or_the_lower_one_alone(
    speedup: float | None, low: float | None, said: str
) -> None:
    high = None if low is None else 1.0676
    assert describe_saving(savings_assuming(speedup, speedup_low=low, speedup_high=high, **ASSUMED)) == said


def test_what_is_assumed_of_a_saving_is_said_where_one_is_named() -> None:
    money = savings_assuming(1.5, speedup_low=1.4, speedup_high=1.6, **ASSUMED)
    assert describe_basis(money) == "The saving assumes $0.60/h, 2 h a run, 100 runs a year."
    assert describe_basis(savings_assuming(None, **ASSUMED)) == ""


TODAY = [2.0, 1.5, 1.25]


@pytest.mark.parametrize(
    ("losses", "own", "sameness"),
    [
        (TODAY, 0.0, Sameness.BITS),
        ([2.0, 1.5, 1.2501], 0.0, Sameness.ROUNDING),
        ([2.0, 1.5, 1.26], 0.0, Sameness.DIFFERS),
        ([2.0, 1.5, 1.26], 0.004, Sameness.ROUNDING),  # today's training itself differs by as much
        ([2.0, math.nan, 1.25], 0.0, Sameness.DIFFERS),
        ([2.0, 1.5], 0.0, Sameness.DIFFERS),
        ([], 0.0, Sameness.UNKNOWN),
    ],
)
def test_losses_are_the_same_as_far_as_rounding_and_todays_own_differences_explain(
    losses: list[float], own: float, sameness: Sameness
) -> None:
    found = compare_numbers(losses, TODAY, own, tolerance=0.001)
    assert found.sameness is sameness
    assert found.is_offered == (sameness in (Sameness.BITS, Sameness.ROUNDING))
