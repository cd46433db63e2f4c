"""Program: an ordinary training loop in bf16, as people write it, without the engine. Does this batch size train?

What such loops keep is kept: the outputs and the batch of the step before, and the gradients until `zero_grad` at the
end of a step. No memory limit is set.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from transformers import BertConfig, BertForSequenceClassification

CONFIGURATIONS = {
    "bert": BertConfig(),
    "bert-tiny": BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512),
}
TOKENS, VOCABULARY = 128, 30_522


def main(device: str, name: str, batch_size: int, steps: int) -> None:
    done, error = 0, None
    model: Any = BertForSequenceClassification(CONFIGURATIONS[name])
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(0, VOCABULARY, (batch_size, TOKENS))
    mask = torch.ones_like(tokens)
    mask[0, -1] = 0  # texts are of unequal length
    data = {"input_ids": tokens, "attention_mask": mask, "labels": torch.randint(0, 2, (batch_size,))}
    try:
        for _ in range(steps):
            batch = {key: value.to(device) for key, value in data.items()}
            with torch.autocast("cuda", dtype=torch.bfloat16):
                outputs = model(**batch)
            outputs.loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            done += 1
        torch.cuda.synchronize(device)
    except torch.OutOfMemoryError as exc:
        error = str(exc)
    print(json.dumps(report(device, batch_size, done, error)))


def report(device: str, batch_size: int, done: int, error: str | None) -> dict[str, object]:
    return {
        "batch_size": batch_size,
        "steps": done,
        "out_of_memory": error is not None,
        "text": error,
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(device),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(device),
        "allocator_retries": torch.cuda.memory_stats(device).get("num_alloc_retries"),
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
