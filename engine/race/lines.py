"""PURE: the lines that make a change in one's own training, for the libraries that people train with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..settings.catalog import Workload
from ..settings.spec import RunSpec
from ..settings.step_settings import FLASH
from .field import Entry

TORCH, TRAINER, LIGHTNING, ACCELERATE = "torch", "trainer", "lightning", "accelerate"
LIBRARIES = {
    TORCH: "plain PyTorch",
    TRAINER: "transformers Trainer",
    LIGHTNING: "Lightning",
    ACCELERATE: "Accelerate",
}

_FUSED = "optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=True)"
CHANNELS_LAST = "model = model.to(memory_format=torch.channels_last)"
CHANNELS_LAST_BATCH = (
    "images = images.to(memory_format=torch.channels_last)  # each tensor of a batch that has channels"
)
TF32 = ('torch.set_float32_matmul_precision("high")', "torch.backends.cudnn.allow_tf32 = True")
ENABLING_CHECKPOINTING = {
    "transformers": 'model.gradient_checkpointing_enable({"use_reentrant": False})',
    "diffusers": "model.enable_gradient_checkpointing()",
}
"""By the library of a model that checkpoints its own blocks."""
FREEING_IN_LIGHTNING = (
    "def optimizer_step(self, *args, **kwargs):",
    "    super().optimizer_step(*args, **kwargs)",
    "    self.zero_grad()  # Lightning would hold the gradients during the next forward pass",
)
"""A method of a LightningModule: gradients are zeroed between `training_step` and the backward pass without it."""
_CHECKPOINTED_BLOCKS = (
    "for block in blocks:  # each repeated block of the model",
    "    block.forward = functools.partial(torch.utils.checkpoint.checkpoint, block.forward, use_reentrant=False)",
)


def without_cache(module: str = "model") -> str:
    return f"{module}.config.use_cache = False"


DECODER_WITHOUT_CACHE = without_cache("model.get_decoder()")
"""The line for a decoder with a config of its own, which the Trainer does not set either."""


def _table(spec: RunSpec, entry: Entry, device_kind: str) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the lines by change and library. Other libraries take those of plain PyTorch, an empty row needs none.

    A line that ends in a comma is an argument of the Trainer's `TrainingArguments`, or of Lightning's `Trainer`.
    """
    is_cpu, workload = device_kind == "cpu", spec.workload
    of_decoder = (DECODER_WITHOUT_CACHE,) if workload.has_config_of_decoder else ()
    compiles_in_fp32 = not is_cpu and spec.precision == "fp32" and "tf32" not in entry
    return {
        "fused": {TORCH: (_FUSED,), TRAINER: ('optim="adamw_torch_fused",  # its default',)},
        "channels-last": {TORCH: (CHANNELS_LAST, CHANNELS_LAST_BATCH), TRAINER: (CHANNELS_LAST,)},
        "sdpa": {TORCH: ('model.set_attn_implementation("sdpa")',)},
        "flash": {TORCH: (f'model.set_attn_implementation("{FLASH}")',)},
        "compile": {
            TORCH: ("model.compile(dynamic=False)",),
            # the Trainer turns TF32 on with it
            TRAINER: ("torch_compile=True,", *(("tf32=False,",) if compiles_in_fp32 else ())),
        },
        "no-cache": {TORCH: (without_cache(), *of_decoder), TRAINER: of_decoder},
        "release-outputs": {TORCH: ("del outputs  # once the loss is computed",), TRAINER: (), LIGHTNING: ()},
        "zero-grad": {
            TORCH: ("optimizer.zero_grad()  # before the forward pass",),
            TRAINER: (),
            LIGHTNING: FREEING_IN_LIGHTNING,
        },
        "expandable": {TORCH: ("export PYTORCH_ALLOC_CONF=expandable_segments:True  # in the shell",)},
        "tf32": {TORCH: TF32, TRAINER: ("tf32=True,",)},
        "bf16": {
            TORCH: (
                f'with torch.autocast("{device_kind}", dtype=torch.bfloat16):  # around the forward pass and the loss',
            ),
            TRAINER: ("bf16=True,", *(("use_cpu=True,",) if is_cpu else ())),
            LIGHTNING: ('precision="bf16-mixed",',),
            ACCELERATE: ('accelerator = Accelerator(mixed_precision="bf16")',),
        },
        "checkpointing": _checkpointing(workload),
    }


def _checkpointing(workload: Workload) -> Mapping[str, tuple[str, ...]]:
    if not workload.library_has_checkpointing:
        return {TORCH: _CHECKPOINTED_BLOCKS}
    lines = {TORCH: (ENABLING_CHECKPOINTING[workload.library],)}
    return lines | {TRAINER: ("gradient_checkpointing=True,",)} if workload.library == "transformers" else lines


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one library."""

    library: str
    title: str
    lines: tuple[str, ...]


def lines_of(entry: Entry, spec: RunSpec, device_kind: str, batch_size: int | None = None) -> tuple[Lines, ...]:
    table = _table(spec, entry, device_kind)
    return tuple(
        Lines(library, title, _of([table[name] for name in entry], library, batch_size))
        for library, title in LIBRARIES.items()
    )


def distinct(lines: Sequence[Lines]) -> tuple[Lines, ...]:
    plain = next((each.lines for each in lines if each.library == TORCH), ())
    return tuple(each for each in lines if each.library == TORCH or each.lines != plain)


def _of(changes: Sequence[Mapping[str, tuple[str, ...]]], library: str, batch_size: int | None) -> tuple[str, ...]:
    lines = [line for change in changes for line in change.get(library, change[TORCH])]
    if batch_size is not None:
        argument = f"per_device_train_batch_size={batch_size}," if library == TRAINER else f"batch_size={batch_size}"
        lines.append(argument if library == TRAINER else f"{argument}  # of the DataLoader")
    return tuple(lines)
