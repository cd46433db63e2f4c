"""The lines to paste do what was measured, in the library that they are for."""

from typing import Any

import pytest
import torch
from torch import nn

from engine.catalog import WORKLOADS
from engine.measurement.torchvision_schemas import import_torchvision
from engine.race.lines import ACCELERATE, LIGHTNING, TORCH, TRAINER, lines_of
from engine.race.variants import CHANGES
from engine.spec import RunSpec


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
