"""PURE: the lines that make a change in one's own training, for the libraries that people train with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..settings.step_settings import FLASH
from .field import Entry
from .variants import CHANGES

TORCH, TRAINER, LIGHTNING, ACCELERATE = "torch", "trainer", "lightning", "accelerate"
LIBRARIES = {
    TORCH: "plain PyTorch",
    TRAINER: "transformers Trainer",
    LIGHTNING: "Lightning",
    ACCELERATE: "Accelerate",
}

_FUSED = "optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=True)"
CHANNELS_LAST = "model = model.to(memory_format=torch.channels_last)"
CHANNELS_LAST_BATCH = "images = images.to(memory_format=torch.channels_last)  # of each batch"
TF32 = ('torch.set_float32_matmul_precision("high")', "torch.backends.cudnn.allow_tf32 = True")
_LINES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "fused": {TORCH: (_FUSED,), TRAINER: ('optim="adamw_torch_fused",',)},
    "channels-last": {TORCH: (CHANNELS_LAST, CHANNELS_LAST_BATCH), TRAINER: (CHANNELS_LAST,)},
    "sdpa": {TORCH: ('model.set_attn_implementation("sdpa")',)},
    "flash": {TORCH: (f'model.set_attn_implementation("{FLASH}")',)},
    "compile": {TORCH: ("model.compile()",), TRAINER: ("torch_compile=True,",)},
    "no-cache": {TORCH: ("model.config.use_cache = False",)},
    "release-outputs": {TORCH: ("loss = model(**batch).loss  # no name for the outputs",), TRAINER: (), LIGHTNING: ()},
    "zero-grad": {TORCH: ("optimizer.zero_grad()  # before the forward pass",), TRAINER: (), LIGHTNING: ()},
    "expandable": {TORCH: ("export PYTORCH_ALLOC_CONF=expandable_segments:True  # in the shell",)},
    "tf32": {TORCH: TF32, TRAINER: ("tf32=True,",)},
    "bf16": {
        TORCH: ('with torch.autocast("{device}", dtype=torch.bfloat16):  # around the forward pass and the loss',),
        TRAINER: ("bf16=True,",),
        LIGHTNING: ('precision="bf16-mixed",',),
        ACCELERATE: ('accelerator = Accelerator(mixed_precision="bf16")',),
    },
    "checkpointing": {
        TORCH: ('model.gradient_checkpointing_enable({{"use_reentrant": False}})',),
        TRAINER: ("gradient_checkpointing=True,",),
    },
}
"""By change and library; a library that is not named takes the lines of plain PyTorch, an empty row needs none.

A line of the Trainer that ends in a comma is an argument of `TrainingArguments`, one of Lightning's of its `Trainer`.
"""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one library."""

    library: str
    title: str
    lines: tuple[str, ...]


def lines_of(entry: Entry, device_kind: str, batch_size: int | None = None) -> tuple[Lines, ...]:
    """Return the lines of the changes of an entry, and of another batch size, for each library."""
    return tuple(
        Lines(library, title, _of(entry, library, device_kind, batch_size)) for library, title in LIBRARIES.items()
    )


def distinct(lines: Sequence[Lines]) -> tuple[Lines, ...]:
    """Return the lines for plain PyTorch, and those of each library that differ from them."""
    plain = next((each.lines for each in lines if each.library == TORCH), ())
    return tuple(each for each in lines if each.library == TORCH or each.lines != plain)


def _of(entry: Entry, library: str, device_kind: str, batch_size: int | None) -> tuple[str, ...]:
    values: dict[str, Any] = {"device": device_kind}
    lines = [line.format(**values) for name in entry for line in _LINES[name].get(library, _LINES[name][TORCH])]
    if batch_size is not None:
        argument = f"per_device_train_batch_size={batch_size}," if library == TRAINER else f"batch_size={batch_size}"
        lines.append(argument if library == TRAINER else f"{argument}  # of the DataLoader")
    return tuple(lines)


assert _LINES.keys() == CHANGES.keys()
