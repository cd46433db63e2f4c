"""One training step: batch, forward, loss, backward, optimizer. This is what is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import save_on_cpu

from ..errors import WorkloadFailed
from ..facts.progress import BACKWARD, FORWARD, OPTIMIZER_STEP
from ..settings.loop_settings import KEPT
from ..settings.spec import RunSpec
from ..settings.step_settings import BEFORE_BACKWARD, BEFORE_FORWARD, FREED
from .optimizers import OfEachWeight, StepInBackward, keeps_state, make_optimizer, optimizers_of_weights, state_on
from .workloads import Built

PhaseMarker = Callable[[str], AbstractContextManager[Any]]
MakeOptimizer = Callable[[str, Iterable[nn.Parameter]], torch.optim.Optimizer | None]

MAX_GRADIENT_NORM = 1.0
"""The limit of the gradients' norm, as in the Trainer of transformers."""
EMA_DECAY = 0.999
_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def apply_precision(precision: str) -> None:
    """Set the process's precision of matrix products: TF32 only if requested (cuDNN would use it by default)."""
    is_tf32 = precision == "tf32"
    torch.set_float32_matmul_precision("high" if is_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = is_tf32


class TrainingStep:
    """Runs full optimizer steps at any batch size, with a new optimizer's state.

    It frees memory when the usual training loop does. `begin` comes before each step and sets the last one's gradients
    to None, unless `zero_grad` is elsewhere. Unless outputs are released, what the model returned lives until the next
    forward pass has returned: `outputs = model(**batch)` rebinds the name only then, so a language model's old logits
    are live together with its new activations.
    """

    def __init__(self, spec: RunSpec, built: Built, device: torch.device, make: MakeOptimizer = make_optimizer) -> None:
        self.spec, self.built, self.device = spec, built, device
        self.micro_batches = spec.accumulation_steps
        self.in_backward: StepInBackward | None = None
        self.optimizer: torch.optim.Optimizer | None = None
        self.of_weights: OfEachWeight = {}
        if spec.gradients == FREED or spec.offload_optimizer:
            weights = built.model.parameters()
            self.of_weights = optimizers_of_weights(spec.optimizer, weights, is_on_host=spec.offload_optimizer)
        else:
            self.optimizer = make(spec.optimizer, built.model.parameters())
        if spec.gradients == FREED:
            self.in_backward = StepInBackward(self.of_weights)
        self.autocast_dtype = _AUTOCAST.get(spec.precision)
        # scale 1: with the usual initial scale of 65,536 the first steps overflow and skip the optimizer
        self.scaler = torch.amp.GradScaler(device.type, init_scale=1.0) if spec.precision == "fp16" else None
        self.averages: dict[nn.Parameter, Tensor] = {}
        self.keeps_state = keeps_state(spec.optimizer)
        self.outputs: Any = None
        self.loss: Tensor | None = None

    def begin(self) -> None:
        """Do with the last step's gradients what the loop does before the forward pass."""
        if self.spec.zero_grad != BEFORE_BACKWARD:
            self.built.model.zero_grad(set_to_none=self.spec.zero_grad == BEFORE_FORWARD)

    def clear_gradients(self) -> None:
        self.built.model.zero_grad(set_to_none=True)

    def __call__(self, batch_size: int, phase: PhaseMarker = nullcontext) -> None:
        """Run one step over micro-batches of `batch_size`; `phase(name)` is entered around each phase of each one."""
        if self.spec.ema and not self.averages:
            learned = (parameter for parameter in self.built.model.parameters() if parameter.requires_grad)
            with phase(OPTIMIZER_STEP):  # before the first forward pass, where training scripts create their average
                self.averages = {parameter: parameter.detach().clone() for parameter in learned}
        with nullcontext() if self.in_backward is None else self.in_backward.attached():
            for number in range(self.micro_batches):
                self._learn_from_micro_batch(batch_size, phase, is_first=number == 0)
        with phase(OPTIMIZER_STEP):
            self._optimizer_step()

    def _learn_from_micro_batch(self, batch_size: int, phase: PhaseMarker, *, is_first: bool) -> None:
        batch = self.built.make_batch(batch_size)
        if any(tensor.shape[0] != batch_size for tensor in batch.values()):
            raise WorkloadFailed(f"the batch does not have {batch_size} samples in every tensor")
        with phase(FORWARD), self._saving():
            loss = self.forward(batch)
            if self.micro_batches > 1:
                loss = loss / self.micro_batches
        if is_first and self.spec.zero_grad == BEFORE_BACKWARD:
            self.clear_gradients()
        with phase(BACKWARD):
            (self.scaler.scale(loss) if self.scaler else loss).backward()

    def _saving(self) -> AbstractContextManager[Any]:
        if not self.spec.offload_activations:
            return nullcontext()
        return save_on_cpu(pin_memory=True, device_type=self.device.type)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the loss of `batch`. First the outputs, then the loss replace those of the previous step."""
        dtype = self.autocast_dtype
        with nullcontext() if dtype is None else torch.autocast(self.device.type, dtype=dtype):
            self.outputs = self.built.forward(batch)
            self.loss = self.built.loss(self.outputs, batch)
        if self.spec.outputs != KEPT:
            self.outputs = None
        return self.loss

    def _optimizer_step(self) -> None:
        if self.optimizer is not None:
            self._step_of_all_weights([self.optimizer])
        elif self.in_backward is None:
            self._step_of_all_weights([each for each in self.of_weights.values() if each is not None])
        if self.spec.ema:
            with torch.no_grad():  # all weights at once, as in torch.optim.swa_utils.get_ema_multi_avg_fn
                torch._foreach_lerp_(list(self.averages.values()), list(self.averages), 1 - EMA_DECAY)

    def _step_of_all_weights(self, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        if self.spec.clip_grad_norm:
            if self.scaler is not None:
                self.scaler.unscale_(optimizers[0])  # the norm is that of the gradients, not of scaled ones
            nn.utils.clip_grad_norm_(self.built.model.parameters(), MAX_GRADIENT_NORM)
        for optimizer in optimizers:
            if self.scaler is None:
                optimizer.step()
            else:
                self.scaler.step(optimizer)
                self.scaler.update()
        if self.keeps_state and optimizers and not any(optimizer.state for optimizer in optimizers):
            raise WorkloadFailed("the optimizer skipped its step (gradients not finite): nothing was measured")

    def state(self, parameter: nn.Parameter) -> list[Tensor]:
        own = self.of_weights.get(parameter) if self.of_weights else self.optimizer
        state = state_on(self.device, own, parameter)
        return [*state, *([self.averages[parameter]] if parameter in self.averages else [])]

    @property
    def buckets(self) -> list[Tensor]:
        return []

    def carried_tensors(self) -> list[Tensor]:
        return _tensors_in([self.outputs, self.loss])


def _tensors_in(value: Any) -> list[Tensor]:
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
