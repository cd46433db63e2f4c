"""One training step: batch, forward, loss, backward, optimizer. The thing that is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import WorkloadFailed
from ..optimizers import OPTIMIZERS
from ..phases import BACKWARD, FORWARD, OPTIMIZER_STEP
from ..spec import RunSpec
from .workloads import Built

PhaseMarker = Callable[[str], AbstractContextManager[Any]]

LEARNING_RATE = 1e-5
_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def apply_precision(precision: str) -> None:
    """Process-wide matrix-multiplication precision: TF32 only if requested (cuDNN would use it by default)."""
    is_tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if is_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = is_tf32


def make_optimizer(name: str, model: nn.Module) -> torch.optim.Optimizer | None:
    """Make a new optimizer of what the model learns; None for "none"."""
    chosen = OPTIMIZERS[name]
    if chosen.torch_class is None:
        return None
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    made: torch.optim.Optimizer = getattr(torch.optim, chosen.torch_class)(learned, lr=LEARNING_RATE, **chosen.options)
    return made


class TrainingStep:
    """Runs full optimizer steps at any batch size, with a new optimizer's state.

    Frees when the usual training loop does. Gradients are set to None at the start of a step, where `zero_grad()`
    stands. What the model returned stays until the next forward pass has returned: `outputs = model(**batch)` binds
    the name anew only then, and so a language model's old logits are live beside its new activations.
    """

    def __init__(self, spec: RunSpec, built: Built, device: torch.device) -> None:
        self.built = built
        self.device = device
        self.optimizer = make_optimizer(spec.optimizer, built.model)
        self.autocast_dtype = _AUTOCAST.get(spec.precision)
        # scale 1: with the usual start of 65,536 the first steps overflow, and the optimizer would not run in them
        self.scaler = torch.amp.GradScaler(device.type, init_scale=1.0) if spec.precision == "fp16" else None
        self.keeps_state = OPTIMIZERS[spec.optimizer].state_copies > 0
        self.outputs: Any = None
        self.loss: Tensor | None = None

    def clear_gradients(self) -> None:
        self.built.model.zero_grad(set_to_none=True)

    @staticmethod
    def unmarked(_: str) -> AbstractContextManager[None]:
        return nullcontext()

    def __call__(self, batch_size: int, phase: PhaseMarker = unmarked) -> None:
        """One step of `batch_size` samples. `phase(name)` is entered around each of the three phases."""
        batch = self.built.make_batch(batch_size)
        if any(tensor.shape[0] != batch_size for tensor in batch.values()):
            raise WorkloadFailed(f"the batch does not have {batch_size} samples in every tensor")
        with phase(FORWARD):
            loss = self.forward(batch)
        with phase(BACKWARD):
            (self.scaler.scale(loss) if self.scaler else loss).backward()
        with phase(OPTIMIZER_STEP):
            self._optimizer_step()

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of `batch`. It and the outputs replace those of the step before, one after the other."""
        dtype = self.autocast_dtype
        with nullcontext() if dtype is None else torch.autocast(self.device.type, dtype=dtype):
            self.outputs = self.built.forward(batch)
            self.loss = self.built.loss(self.outputs, batch)
        return self.loss

    def _optimizer_step(self) -> None:
        if self.optimizer is None:
            return
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        if self.keeps_state and not self.optimizer.state:
            raise WorkloadFailed("the optimizer skipped its step (gradients not finite): nothing was measured")

    def state_tensors(self) -> list[Tensor]:
        """Every tensor of the optimizer's state (after the first step)."""
        if self.optimizer is None:
            return []
        return [v for state in self.optimizer.state.values() for v in state.values() if isinstance(v, Tensor)]

    def gradients(self) -> list[Tensor]:
        return [p.grad for p in self.built.model.parameters() if p.grad is not None]

    def carried_tensors(self) -> list[Tensor]:
        """Return what the last step returned and the next one will replace: logits, caches, the loss."""
        return _tensors_in([self.outputs, self.loss])


def _tensors_in(value: Any) -> list[Tensor]:
    """Every tensor that is held by `value`: in containers, and in attributes of objects such as a key-value cache."""
    found, seen, waiting = [], set(), [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (nn.Module, type)):
            continue
        seen.add(id(one))
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, Mapping):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple, set)):
            waiting.extend(one)
        else:
            waiting.extend(getattr(one, "__dict__", {}).values())
    return found
