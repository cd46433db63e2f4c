"""Ranks that Lightning starts itself: copies of the script (`ddp`) or spawned processes (`ddp_spawn`)."""

import argparse

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return self.layers(batch[0]).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--batch-size", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy=options.strategy, max_epochs=50, logger=False, enable_checkpointing=False
    )
    trainer.fit(Net(), DataLoader(TensorDataset(torch.randn(8_000, 64)), batch_size=options.batch_size))
