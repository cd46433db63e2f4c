"""Program: somebody else on the card. Takes memory when standard input says so, however often it has to ask."""

from __future__ import annotations

import json
import sys
import time

import torch


def main(device: str, size_bytes: int) -> None:
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    started, attempts = time.monotonic(), 0
    while True:
        attempts += 1
        try:
            held = torch.empty(size_bytes, dtype=torch.uint8, device=device)
            break
        except RuntimeError as exc:  # the run holds it just now
            if "out of memory" not in str(exc):
                raise
            time.sleep(0.01)
    answer = {"took_bytes": held.numel(), "attempts": attempts, "waited_seconds": time.monotonic() - started}
    print(json.dumps(answer), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
