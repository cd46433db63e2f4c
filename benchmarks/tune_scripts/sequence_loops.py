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

ROWS, WORDS, WIDTH, LONGEST, CHUNK = 4_000, 500, 32, 64, 16


class Sentences(Dataset):
    """Sentences of random length, the same in each start; of pairs, one that was chosen and one that was not."""

    def __init__(self, pairs=False):
        draw, self.pairs = random.Random(0), pairs
        self.lengths = [draw.randint(8, LONGEST) for _ in range(ROWS)]

    def __len__(self):
        return ROWS

    def __getitem__(self, row):
        tokens = torch.full((self.lengths[row],), 1 + row % (WORDS - 1))
        return (tokens, tokens.flip(0)[: 4 + row % 50]) if self.pairs else tokens


class Episodes(Dataset):
    """Frames of a robot's camera with its joints and the next actions, as in lerobot."""

    def __len__(self):
        return ROWS

    def __getitem__(self, row):
        past = torch.arange(CHUNK) >= 4 + row % CHUNK
        sample = {"observation.image": torch.rand(2, 3, 24, 24), "observation.state": torch.rand(2, 6)}
        return sample | {"action": torch.rand(CHUNK, 6), "action_is_pad": past, "task": "push"}


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


class Policy(nn.Module):
    """Actions for the next steps, as in ACT."""

    def __init__(self):
        super().__init__()
        self.see = nn.Sequential(nn.Conv2d(3, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, WIDTH, 5, 2), nn.ReLU())
        self.state, self.places = nn.Linear(6, WIDTH), nn.Parameter(torch.randn(CHUNK, WIDTH))
        self.body = nn.Transformer(WIDTH, 2, 1, 1, 64, batch_first=True)
        self.act = nn.Linear(WIDTH, 6)

    def forward(self, batch):
        pictures = batch["observation.image"]
        seen = self.see(pictures.flatten(0, 1)).flatten(2).transpose(1, 2).reshape(len(pictures), -1, WIDTH)
        memory = torch.cat([seen, self.state(batch["observation.state"])], 1)
        actions = self.act(self.body(memory, self.places.expand(len(pictures), -1, -1)))
        errors = F.l1_loss(actions, batch["action"], reduction="none") * ~batch["action_is_pad"][..., None]
        return errors.mean(), {"l1": errors.mean().item()}


def log_likelihood(model, tokens):
    logits = model(tokens[:, :-1]).log_softmax(-1)
    return (logits.gather(2, tokens[:, 1:, None])[..., 0] * (tokens[:, 1:] > 0)).sum(1)


def joined(pairs):
    """Collate chosen before rejected answers, padded together."""
    return pad_sequence([each for side in zip(*pairs, strict=True) for each in side], batch_first=True)


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
    case, size = args.case, args.batch_size
    model = Policy() if case == "robot" else Model(case)
    data = Episodes() if case == "robot" else Sentences(pairs=case == "preferred")
    if case == "token_budget":
        loader = DataLoader(data, batch_sampler=TokenBatches(data.lengths, args.max_tokens), collate_fn=padded)
    else:
        collate = {"robot": None, "preferred": joined}.get(case, padded)
        loader = DataLoader(data, size, shuffle=True, drop_last=True, collate_fn=collate)
    reference = Model(case).eval().requires_grad_(False) if case == "preferred" else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(100):
        for number, batch in enumerate(loader):
            if case == "robot":
                loss, _ = model(batch)
            elif case == "preferred":
                ours = log_likelihood(model, batch)
                with torch.no_grad():
                    theirs = log_likelihood(reference, batch)
                chosen, rejected = (ours - theirs).chunk(2)
                loss = -F.logsigmoid(0.1 * (chosen - rejected)).mean()
            else:
                logits = model(batch[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), ignore_index=0)
            (loss / args.accumulate).backward()
            if (number + 1) % args.accumulate == 0 or number + 1 == len(loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    main()
