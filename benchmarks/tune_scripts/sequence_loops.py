"""Loops over sequences as people write them in 2026, small.

python sequence_loops.py CASE --batch-size N    (of token_budget: --max-tokens N)
"""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

ROWS, WORDS, WIDTH, LONGEST = 4_000, 500, 32, 64


class Sentences(Dataset):
    """Sentences of random length, the same in each start."""

    def __init__(self):
        draw = random.Random(0)
        self.lengths = [draw.randint(8, LONGEST) for _ in range(ROWS)]

    def __len__(self):
        return ROWS

    def __getitem__(self, row):
        return torch.full((self.lengths[row],), 1 + row % (WORDS - 1))


class TokenBatches:
    """Rows of about one length, as many as the tokens allow, padding counted; the batches in random order."""

    def __init__(self, lengths, max_tokens):
        self.batches, batch = [], []
        for row in sorted(range(len(lengths)), key=lengths.__getitem__):
            if batch and lengths[row] * (len(batch) + 1) > max_tokens:
                self.batches.append(batch)
                batch = []
            batch.append(row)
        self.batches.append(batch)

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)


class Experts(nn.Module):
    """The best of four experts for each token, by a noisy gate."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList([feed_forward(WIDTH) for _ in range(4)])

    def forward(self, x):
        tokens = x.flatten(0, 1)
        logits = self.gate(tokens)
        share, chosen = (logits + torch.randn_like(logits)).softmax(1).max(1)
        answer = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            (rows,) = torch.where(chosen == number)
            answer = answer.index_add(0, rows, expert(tokens[rows]) * share[rows, None])
        return answer.view_as(x)


def feed_forward(width):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class Model(nn.Module):
    """A causal language model of two layers."""

    def __init__(self, case):
        super().__init__()
        self.checkpoints = case == "checkpointed"
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Experts() if case == "experts" else feed_forward(WIDTH) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.attentions = nn.ModuleList([nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(2)])

    def layer(self, x, number):
        hidden = self.norms[number](x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        x = x + self.attentions[number](hidden, hidden, hidden, attn_mask=mask, need_weights=False)[0]
        return x + self.layers[number](x)

    def forward(self, tokens):
        x = self.words(tokens)
        for number in range(2):
            x = checkpoint(self.layer, x, number, use_reentrant=False) if self.checkpoints else self.layer(x, number)
        return x @ self.words.weight.T


def padded(rows):
    return pad_sequence(rows, batch_first=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--accumulate", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, data = Model(args.case), Sentences()
    if args.case == "token_budget":
        loader = DataLoader(data, batch_sampler=TokenBatches(data.lengths, args.max_tokens), collate_fn=padded)
    else:
        loader = DataLoader(data, args.batch_size, shuffle=True, drop_last=True, collate_fn=padded)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(100):
        for number, batch in enumerate(loader):
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=0)
            (loss / args.accumulate).backward()
            if (number + 1) % args.accumulate == 0 or number + 1 == len(loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    main()
