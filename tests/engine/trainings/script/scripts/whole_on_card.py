"""Two epochs over sequences on a card, one of them far longer than the others, with an evaluation and a checkpoint."""

import sys

import torch
from torch import nn

torch.manual_seed(1)
data = [torch.ones(32, dtype=torch.long) for _ in range(2_000)]
data[1_500] = torch.ones(512, dtype=torch.long)
loader = torch.utils.data.DataLoader(
    data,
    batch_size=int(sys.argv[1]),
    shuffle=True,
    collate_fn=lambda rows: nn.utils.rnn.pad_sequence(rows, batch_first=True),
)
model = nn.Sequential(nn.Embedding(1_000, 256), nn.Linear(256, 1_024), nn.ReLU(), nn.Linear(1_024, 64)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model.train()
    for ids in loader:
        optimizer.zero_grad()
        model(ids.cuda()).sum().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for ids in torch.utils.data.DataLoader(data[:64], batch_size=8):
            model(ids.cuda())
    torch.save(model.state_dict(), f"{sys.argv[2]}/model.pt")
