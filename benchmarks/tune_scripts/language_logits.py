"""A language model's loop in the usual form: the logits of a step live until those of the next replace them."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(1337)
VOCABULARY, LENGTH, WIDTH = 16_000, 32, 48


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.block = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, targets):
        hidden, _ = self.block(self.tokens(ids))
        logits = self.head(hidden)
        return logits, nn.functional.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))


data = torch.randint(VOCABULARY, (100_000,))
batch_size = int(sys.argv[1])


def get_batch():
    starts = torch.randint(len(data) - LENGTH - 1, (batch_size,))
    rows = torch.stack([data[at : at + LENGTH + 1] for at in starts])
    return rows[:, :-1], rows[:, 1:]


model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
for _ in range(10_000):
    xb, yb = get_batch()
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
