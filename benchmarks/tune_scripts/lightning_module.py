"""A Lightning module, trained by Lightning's own loop."""

import sys

import torch
from mlp import network, rows

from engine.measurement.torchvision_schemas import import_torchvision

import_torchvision()  # Lightning imports it, which the CPU build of torch alone does not allow

import lightning.pytorch as pl  # noqa: E402


class Classifier(pl.LightningModule):
    """The small MLP as a module that knows its loader and its optimizer."""

    def __init__(self, batch_size):
        super().__init__()
        self.batch_size, self.network, self.data = batch_size, network(), rows()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

    def train_dataloader(self):
        return torch.utils.data.DataLoader(self.data, batch_size=self.batch_size, shuffle=True)

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])


def trainer(**options):
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    return pl.Trainer(accelerator="cpu", enable_model_summary=False, **quiet, **options)


if __name__ == "__main__":
    trainer(max_epochs=100).fit(Classifier(int(sys.argv[1])))
