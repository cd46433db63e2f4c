"""A training that reads its batch size from a JSON file."""

import json
import sys
from pathlib import Path

import torch
from mlp import network, rows

config = json.loads(Path(sys.argv[1]).read_text())
loader = torch.utils.data.DataLoader(rows(), batch_size=config["train"]["batch_size"], shuffle=True)
model = network()
optimizer = torch.optim.AdamW(model.parameters())
for inputs, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
