"""A training whose batch size stands in a config file, YAML or Python, beside other settings."""

import argparse
import runpy

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--config", required=True)
path = parser.parse_args().config
with open(path) as file:
    config = runpy.run_path(path)["config"] if path.endswith(".py") else yaml.safe_load(file)
train = config["train"]
loader = DataLoader(TensorDataset(torch.randn(2_000, 64)), batch_size=train["batch_size"], shuffle=True)
model = nn.Linear(64, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=float(train["lr"]))
for _ in range(train["epochs"]):
    for (inputs,) in loader:
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
