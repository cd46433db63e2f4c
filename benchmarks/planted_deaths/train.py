"""A training that dies as it is told: `train.py KIND HOW MIB`."""

import io
import os
import random
import resource
import signal
import sys
from pathlib import Path

import torch

KIND, HOW, MIB = sys.argv[1], sys.argv[2], float(sys.argv[3])
DIE_AT, HEADROOM_MIB = 60, 256
CARD = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 23.50 GiB of which {free} is free. "
    "{others}Including non-PyTorch memory, this process has {own} memory in use. Of the allocated memory {held} is "
    "allocated by PyTorch, and {pieces} is reserved by PyTorch but unallocated."
)
MESSAGES = {
    "pieces": CARD.format(
        asked="1.50 GiB", free="300.00 MiB", others="", own="23.00 GiB", held="17.10 GiB", pieces="5.40 GiB"
    ),
    "others": CARD.format(
        **{"asked": "2.00 GiB", "free": "900.00 MiB", "others": "Process 4711 has 14.20 GiB memory in use. "},
        **{"own": "8.30 GiB", "held": "7.90 GiB", "pieces": "120.00 MiB"},
    ),
}
ERRORS = {
    "driver assert": "CUDA error: device-side assert triggered",
    "driver lost": "CUDA error: unspecified launch failure",
    "ranks timeout": "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE)",
    "ranks reset": "NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error",
}


def limit_memory(more_mib: float) -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1]) for line in lines if line.startswith("VmData"))
    most = held * 1024 + round(more_mib * 2**20)
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, row: int) -> torch.Tensor:
        if KIND == "worker" and row > 16 * DIE_AT:
            if HOW == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("unable to write to file </torch_4711_0>: No space left on device (28)")
        is_long = KIND == "long" and row >= 16 * DIE_AT
        length = 10_000 if is_long else 4 + row // 100 if HOW == "sorted" else random.Random(row).randint(4, 40)
        return torch.randn(length, 64)


def padded(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def described(rows: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"labels": torch.zeros(len(rows)), "inputs": padded(rows)}


def build() -> torch.nn.Module:
    if KIND == "loading":
        limit_memory(HEADROOM_MIB)
    wide = 2_000_000 if KIND == "loading" and HOW == "build" else 256
    return torch.nn.Sequential(torch.nn.Linear(64, wide), torch.nn.GELU(), torch.nn.Linear(wide, 64))


def load_model(model: torch.nn.Module) -> torch.nn.Module:
    if KIND == "loading" and HOW == "move":
        model.add_module("copy", torch.nn.Linear(20_000, 20_000))
    return model


def evaluate(model: torch.nn.Module) -> None:
    limit_memory(HEADROOM_MIB)
    kept = []
    with torch.no_grad():
        while True:
            kept.append(model(torch.randn(20_000, 64)))


def save_checkpoint(model: torch.nn.Module) -> None:
    limit_memory(HEADROOM_MIB)
    copies = [{name: each.clone() for name, each in model.state_dict().items()}]
    while True:
        copies += [{name: each.clone() for name, each in copies[0].items()} for _ in range(1_000)]


def train() -> None:
    torch.manual_seed(0)
    model = load_model(build())
    optimizer = torch.optim.AdamW(model.parameters())
    workers = 2 if HOW == "workers" or KIND == "worker" else 0
    collate = described if HOW == "tokens" else padded
    loader = torch.utils.data.DataLoader(Rows(), batch_size=16, num_workers=workers, collate_fn=collate)
    kept, noise = [], random.Random(1)
    if KIND in ("grows", "long", "start"):
        limit_memory(max(HEADROOM_MIB, 120 * MIB) if KIND == "grows" else HEADROOM_MIB)
    for step, batch in enumerate(loader):
        inputs = batch["inputs"] if isinstance(batch, dict) else batch
        if KIND == "start" and step == (HOW == "second"):
            inputs = torch.randn(16, 20_000, 64)
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        if KIND == "grows":
            grow(kept, model, noise, step)
        elif step == DIE_AT:
            die(model)
        elif step < 3 and HOW == "early":
            raise torch.OutOfMemoryError(MESSAGES[KIND])


def grow(kept: list, model: torch.nn.Module, noise: random.Random, step: int) -> None:
    count = round(MIB * 2**20 / 4)
    if HOW == "outputs":
        kept.append(torch.ones(count))
    elif HOW == "cache":
        kept.append({"step": step, "features": [torch.ones(count // 2), torch.ones(count // 2)]})
    elif HOW == "noisy":
        kept.append(torch.ones(round(count * noise.uniform(0.2, 1.8))))
    else:
        held = torch.ones(count // 64, 64)
        kept.append((model[2].bias * held).sum())


def die(model: torch.nn.Module) -> None:
    if KIND == "evaluation":
        if HOW == "function":
            evaluate(model)
        limit_memory(HEADROOM_MIB)
        model.eval()
        outputs = []
        for _ in range(10_000):
            with torch.no_grad():
                outputs.append(model(torch.randn(20_000 if HOW == "inline" else 2_000, 64)))
    elif KIND == "saving":
        if HOW == "function":
            save_checkpoint(model)
        limit_memory(HEADROOM_MIB)
        torch.save(torch.ones(55_000_000), io.BytesIO())
    elif KIND in MESSAGES:
        raise torch.OutOfMemoryError(MESSAGES[KIND])
    elif KIND in ("driver", "ranks"):
        raise RuntimeError(ERRORS[f"{KIND} {HOW}"])
    elif KIND == "disk":
        if HOW == "save":
            torch.save(model.state_dict(), "/dev/full")
        with Path("/dev/full").open("w") as file:
            file.write("loss")
    elif KIND == "killed":
        os.kill(os.getpid(), signal.SIGKILL if HOW == "kill" else signal.SIGTERM)
    elif KIND == "wrong":
        raise (
            ValueError("expected a lower loss")
            if HOW == "value"
            else RuntimeError("mat1 and mat2 shapes cannot be multiplied (16x64 and 32x8)")
        )


if __name__ == "__main__":
    try:
        train()
    except RuntimeError:
        resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        raise
