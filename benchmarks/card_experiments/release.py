"""Program: is the memory of a killed process free as soon as the process is reaped? Tried several times.

This process imports torch and never opens the card. It forks one that watches what the driver counts as used, and for
each kill one that holds the memory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import torch

SETTLED_BYTES = 2 * 2**20
SETTLE_SECONDS = 10.0


def main(device: str, held_bytes: int, times: int) -> None:
    question, pid = forked(lambda pipe: watch(pipe, device))
    try:
        kills = [one_kill(question, device, held_bytes) for _ in range(times)]
    finally:
        question.send("end")
        os.waitpid(pid, 0)
    print(json.dumps({"held_bytes": held_bytes, "kills": kills}))


def one_kill(question: Connection, device: str, held_bytes: int) -> dict[str, float | int | None]:
    baseline = used_bytes(question)
    holder, pid = forked(lambda pipe: hold(pipe, device, held_bytes))
    try:
        holder.recv()
        with_holder = used_bytes(question)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    reaped = time.monotonic()
    at_once = used_bytes(question) - baseline
    now, settled_seconds = at_once, 0.0
    while abs(now) > SETTLED_BYTES and (settled_seconds := time.monotonic() - reaped) < SETTLE_SECONDS:
        now = used_bytes(question) - baseline
    is_settled = abs(now) <= SETTLED_BYTES
    return {
        "took_bytes": with_holder - baseline,
        "held_after_bytes": at_once,
        "settled_seconds": settled_seconds if is_settled else None,
    }


def used_bytes(question: Connection) -> int:
    question.send("used")
    answer: int = question.recv()
    return answer


def watch(pipe: Connection, device: str) -> None:
    while pipe.recv() == "used":
        free, total = torch.cuda.mem_get_info(device)
        pipe.send(total - free)


def hold(pipe: Connection, device: str, held_bytes: int) -> None:
    held = torch.empty(held_bytes, dtype=torch.uint8, device=device)
    torch.cuda.synchronize(device)
    pipe.send(held.numel())
    signal.pause()


def forked(work: Callable[[Connection], None]) -> tuple[Connection, int]:
    """A child that does the work; the other end of its pipe, and its process id."""
    ours, theirs = Pipe()
    pid = os.fork()
    if pid == 0:
        ours.close()
        status = 1
        try:
            work(theirs)
            status = 0
        finally:
            os._exit(status)
    theirs.close()
    return ours, pid


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
