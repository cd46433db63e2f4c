"""What trains on several GPUs, and what does not: refusals by name, each with what helps. Loads no torch."""

from __future__ import annotations

from ..errors import SpecError
from ..program import PROGRAM
from .adapter_settings import DORA
from .optimizers import OPTIMIZERS
from .rank_settings import DDP, FSDP, STRATEGIES, ZERO1
from .step_settings import FREED
from .training_settings import TrainingSettings

_ON_ONE_DEVICE = (
    "this trains on one device; several are measured by `{program} {model} --ranks {ranks} --strategy {strategy}`, "
    "emulated by --emulate-ranks {ranks}, and estimated"
)


def check_ranks(spec: TrainingSettings) -> None:
    """Raise SpecError for several GPUs without a strategy, the reverse, and for what does not train on them."""
    if spec.ranks == 1:
        if spec.strategy:
            raise SpecError("ranks", f"must be 2 or more with strategy {spec.strategy}; leave that out for one GPU")
        if spec.communication_bytes is not None:
            raise SpecError("communication_bytes", "is of several GPUs: give ranks too")
        return
    if not spec.strategy:
        offered = ", ".join(filter(None, STRATEGIES))
        raise SpecError("strategy", f"is required with {spec.ranks} GPUs; one of {offered}")
    if not spec.device.startswith(("cuda", "auto", "cpu")):
        raise SpecError("ranks", f"several devices are of CUDA, or cpu by gloo, not {spec.device}")
    if spec.gradients == FREED:
        raise SpecError("gradients", f"{FREED} ones cannot be averaged over {spec.ranks} GPUs; keep them")
    for name, other in (("offload_activations", "gradient_checkpointing"), ("offload_optimizer", f"strategy {FSDP}")):
        if getattr(spec, name):
            raise SpecError(name, f"is not offered on several GPUs; {other} saves memory there")
    if spec.strategy == FSDP:
        _check_fsdp(spec)
    if spec.strategy == ZERO1:
        _check_sharded_state(spec)
        if spec.optimizer == "none":
            raise SpecError("strategy", f"{ZERO1} shards the optimizer's state, and none has none; take {DDP}")


def _check_sharded_state(spec: TrainingSettings) -> None:
    """Raise SpecError for optimizers of other libraries: they do not know sharded weights, or keep paged state."""
    if OPTIMIZERS[spec.optimizer].library != "torch":
        text = f"{spec.optimizer} is not of torch.optim, whose state {spec.strategy} shards; take adamw, or {DDP}"
        raise SpecError("optimizer", text)


def _check_fsdp(spec: TrainingSettings) -> None:
    """Raise SpecError for what torch's fully_shard refuses, or its hooks do not see."""
    _check_sharded_state(spec)
    if spec.optimizer == "adafactor":
        raise SpecError("optimizer", f"adafactor needs whole rows and columns of a weight; take adamw, or {DDP}")
    if spec.precision == "fp16":
        raise SpecError("precision", f"fp16 and its gradient scaling are not offered with {FSDP}; take bf16")
    for name in ("load_in_4bit", "load_in_8bit"):
        if getattr(spec, name):
            raise SpecError(name, f"{FSDP} does not shard quantized weights of bytes; take {DDP}, or LoRA alone")
    if spec.lora_variant == DORA:
        raise SpecError("lora_variant", f"{DORA} reads whole weights outside their layer; take plain or rslora")
    for name in ("loss_chunk_tokens", "liger_loss"):
        if getattr(spec, name):
            raise SpecError(name, f"calls parts of the model, and {FSDP} gathers weights for the whole; leave it out")


def check_measured(spec: TrainingSettings) -> None:
    """Raise SpecError for several GPUs where one process is to train a model of the catalogue: it has one."""
    if spec.ranks > 1:
        names = {"ranks": spec.ranks, "strategy": spec.strategy, "program": PROGRAM, "model": spec.model}
        raise SpecError("ranks", _ON_ONE_DEVICE.format(**names))


def held_bytes(spec: TrainingSettings, weights: float, gradients: float, state: float) -> float:
    """Return what one GPU holds at one time of these copies of the weights, at least."""
    if spec.strategy == FSDP:
        return (weights + gradients + state) / spec.ranks
    if spec.strategy == ZERO1:
        return weights + gradients + state / spec.ranks
    return weights + gradients + state
