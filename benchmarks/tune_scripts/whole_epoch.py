"""Two epochs over sequences of different lengths, one of them far longer; evaluates with a larger batch and saves.

python whole_epoch.py BATCH_SIZE FOLDER [evaluates]
"""

import sys
from pathlib import Path

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1)
lengths = torch.randint(8, 64, (501,), generator=torch.Generator().manual_seed(1)).tolist()
lengths[400] = 256
data = [torch.randint(1, 1_000, (n,)) for n in lengths]
held_out = [torch.randint(1, 1_000, (48,)) for _ in range(600)]


class Tagger(nn.Module):
    """Scores each token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.body, self.head = nn.Embedding(1_000, 32), nn.Linear(32, 64), nn.Linear(64, 5)

    def forward(self, ids):
        return self.head(self.body(self.embedding(ids)).relu())


def collate(rows):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


batch_size, folder = int(sys.argv[1]), Path(sys.argv[2])
loader = torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True, collate_fn=collate)
checks = torch.utils.data.DataLoader(held_out, batch_size=600 if "evaluates" in sys.argv else 8, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for batch in checks:
            model(batch)
    torch.save(model.state_dict(), folder / "model.pt")
