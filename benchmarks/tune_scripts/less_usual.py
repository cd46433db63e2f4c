"""Two epochs of loops that are less usual than a loader with one optimizer, over rows of which few are long.

python less_usual.py BATCH_SIZE FOLDER CASE
"""

import copy
import sys

import torch
from torch import nn

ROWS, LONGEST, WORDS = 4_000, 256, 1_000
batch_size, folder, case = int(sys.argv[1]), sys.argv[2], sys.argv[3]
torch.set_num_threads(1)
torch.manual_seed(1)
generator = torch.Generator().manual_seed(1)
lengths = torch.randint(8, 48, (ROWS,), generator=generator)
lengths[torch.randperm(ROWS, generator=generator)[: ROWS // 100]] = LONGEST
data = [torch.randint(1, WORDS, (int(n),), generator=generator) for n in lengths]
held_out = [torch.randint(1, WORDS, (64,), generator=generator) for _ in range(200)]


class Stream(torch.utils.data.IterableDataset):
    """The same rows, one after the other."""

    def __iter__(self):
        return iter(data)


def padded(rows):
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def tagger(width=96):
    return nn.Sequential(nn.Embedding(WORDS, 32), nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 16))


def loader_of(rows, size, **options):
    return torch.utils.data.DataLoader(rows, batch_size=size, collate_fn=padded, **options)


def batches():
    """One epoch without any loader."""
    order = torch.randperm(ROWS).tolist()
    for at in range(0, ROWS, batch_size):
        yield padded([data[row] for row in order[at : at + batch_size]])


def pairs(loader):
    """Two batches of one loader at a time."""
    drawn = iter(loader)
    return zip(drawn, drawn, strict=False)


def evaluate():
    if case != "evaluates_in_train_mode":
        model.eval()
    losses = []
    with torch.set_grad_enabled(case == "evaluates_with_gradients"):
        losses.extend(model(batch).square().mean() for batch in loader_of(held_out, 32))
    model.train()
    return float(sum(losses))


model, other = tagger(), tagger(160)
optimizer = torch.optim.AdamW(model.parameters())
later = torch.optim.AdamW(other.parameters()) if case in ("two_optimizers", "later_optimizer") else None
loader = loader_of(Stream() if case == "stream" else data, batch_size, shuffle=None if case == "stream" else True)
if case == "accelerate":
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if case == "teacher":
    other.eval().requires_grad_(False)
best, steps = float("inf"), 0
for _ in range(2):
    drawn = batches() if case == "no_loader" else pairs(loader) if case == "two_at_once" else loader
    for batch in drawn:
        optimizer.zero_grad()
        steps += 1
        if case == "accelerate":
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).square().mean())
                optimizer.step()
            continue
        if case == "two_at_once":
            loss = sum(model(each).square().mean() for each in batch)
        elif case == "teacher":
            with torch.no_grad():
                wanted = other(batch)
            loss = (model(batch) - wanted).square().mean()
        else:
            loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        if case == "two_optimizers" or (case == "later_optimizer" and steps > 60):
            later.zero_grad()
            other(batch).square().mean().backward()
            later.step()
    loss = evaluate()
    if case == "stops_early" and loss >= best:
        break
    best, kept = min(best, loss), copy.deepcopy(model) if loss < best else None
    torch.save(model.state_dict(), f"{folder}/model.pt")
