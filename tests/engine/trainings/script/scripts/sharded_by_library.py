"""A training on two GPUs that a library shards: Lightning, which starts its ranks itself, or accelerate."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--by", choices=["lightning", "accelerate"])
parser.add_argument("--batch-size", type=int)
options = parser.parse_args()
net = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(4)])
loader = DataLoader(TensorDataset(torch.randn(8_192, 512)), batch_size=options.batch_size)

if options.by == "lightning":
    import lightning

    class Net(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.trainer.model.parameters(), lr=1e-3)

    trainer = lightning.Trainer(
        accelerator="gpu", devices=2, strategy="fsdp", max_epochs=3, logger=False, enable_checkpointing=False
    )
    trainer.fit(Net(), loader)
else:
    from accelerate import Accelerator

    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    for _ in range(5):
        for (rows,) in loader:
            optimizer.zero_grad()
            accelerator.backward(model(rows).square().mean())
            optimizer.step()
