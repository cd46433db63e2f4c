"""A training without an optimizer: it subtracts the gradients itself, as pytorch/examples' word_language_model does."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
options = parser.parse_args()
torch.manual_seed(1)
torch.set_num_threads(1)
tokens = torch.randint(0, 100, (35 * options.batch_size * 20,)).view(-1, options.batch_size)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.memory, self.out = nn.Embedding(100, 32), nn.LSTM(32, 64), nn.Linear(64, 100)

    def forward(self, inputs, state):
        found, state = self.memory(self.words(inputs), state)
        return self.out(found), state


model = Language()
for _ in range(3):
    state = None
    for start in range(0, len(tokens) - 36, 35):
        model.zero_grad()
        state = None if state is None else tuple(each.detach() for each in state)
        found, state = model(tokens[start : start + 35], state)
        loss = nn.functional.cross_entropy(found.flatten(0, 1), tokens[start + 1 : start + 36].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for parameter in model.parameters():
            parameter.data.add_(parameter.grad, alpha=-1.0)
        print(loss.item().hex(), flush=True)
