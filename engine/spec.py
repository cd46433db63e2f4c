"""What is asked: a workload, its settings, a device and the limits of the search.

A `RunSpec` is validated once, when it is made, and is everything needed to repeat a run.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from .catalog import WORKLOADS, Workload, workload_ids
from .errors import SpecError
from .units import BYTES_ALLOWED, GIB, format_bytes, parse_bytes

SCHEMA = 1
MEMORY_STEPS = 3  # full optimizer steps of a probe: with Adam the second one holds more than the first
RESERVE_FRACTION = 0.05
"""Of the memory limit: what the recommended size leaves free by default. Between fresh processes the same training was
seen to differ by far less, but a real one also meets longer batches, evaluation, fragmentation over hours and libraries
that load kernels late. It is a convention and no measured bound."""

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
AMPERE = (8, 0)
"""The first compute capability with bfloat16 and TensorFloat-32."""
NEEDS_AMPERE = ("tf32", "bf16")
OPTIMIZERS = ("none", "sgd", "momentum", "adamw")
MODES = ("train", "eval")
DEVICE_KINDS = ("cuda", "xpu", "mps", "cpu")
DEVICE_NAMES = re.compile(r"auto|(?:cuda|xpu)(?::\d{1,3})?|mps(?::0)?|cpu", re.ASCII)

MAX_BATCH_SIZE = 1_048_576
CPU_DEFAULT_LIMIT_BYTES = 4 * GIB
"""The budget of a CPU run without a memory limit: a CPU has no memory of its own to fill."""

# copies of the weights that the optimizer keeps as its state
_STATE_COPIES = {"none": 0, "sgd": 0, "momentum": 1, "adamw": 2}
BYTES_PER_PARAMETER = 4  # weights, gradients and state stay fp32 under autocast


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One analysis, ready to run. Raises SpecError, naming the field, for anything not allowed.

    Sizes are bytes, times seconds, prices US dollars. `None` means: the workload's or the engine's default.
    """

    model: str
    device: str = "auto"
    precision: str = "fp32"
    optimizer: str = "adamw"
    gradient_checkpointing: bool = False
    mode: str = "train"
    sequence_length: int | None = None
    image_size: int | None = None
    pretrained: bool = False
    current_batch_size: int = 16
    memory_limit_bytes: int | None = None
    start_batch_size: int | None = None
    max_batch_size: int = 65_536
    time_budget_seconds: float = 1800.0
    soak_steps: int | None = None
    reserve_fraction: float = RESERVE_FRACTION
    price_per_hour_usd: float = 0.60
    hours_per_run: float = 2.0
    runs_per_year: int = 100

    def __post_init__(self) -> None:
        _check_types(self)
        _check_choices(self)
        _check_device(self)
        _check_numbers(self)
        _check_workload(self)

    @property
    def workload(self) -> Workload:
        return WORKLOADS[self.model]

    @property
    def input_size(self) -> int:
        """Tokens per sample, or the side of the square image in pixels."""
        asked = self.sequence_length if self.workload.is_text else self.image_size
        return self.workload.default_input_size if asked is None else asked

    @property
    def fixed_bytes(self) -> int:
        """What every step holds at one time at any batch size: a floor for the memory limit.

        The weights and, when the backward pass ends, all their gradients, with and without an optimizer and in either
        mode; then the optimizer makes its state beside both.
        """
        copies = 2 + _STATE_COPIES[self.optimizer]
        return copies * BYTES_PER_PARAMETER * self.workload.parameter_count

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RunSpec:
        """Build a spec from JSON. `memory_limit_bytes` may be text such as "24GiB"."""
        if not isinstance(data, dict):
            raise SpecError("spec", "must be a JSON object")
        names = [f.name for f in fields(cls)]
        for key in data:
            if key not in names:
                raise SpecError(str(key)[:80], f"unknown key; allowed are {', '.join(names)}")
        if "model" not in data:
            raise SpecError("model", f"is required; one of {', '.join(workload_ids())}")
        limit = data.get("memory_limit_bytes")
        if isinstance(limit, str):
            data = {**data, "memory_limit_bytes": memory_limit_bytes(limit)}
        return cls(**data)


def memory_limit_bytes(text: str) -> int:
    """`parse_bytes` whose error names the field."""
    try:
        return parse_bytes(text)
    except ValueError as exc:
        raise SpecError("memory_limit_bytes", str(exc)) from exc


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "int | None": (int, type(None)),
}
_TYPE_WORDS = {"str": "text", "bool": "true or false", "float": "a number"}


def _check_types(spec: RunSpec) -> None:
    for field in fields(spec):
        value, declared = getattr(spec, field.name), str(field.type)
        is_wrong_bool = isinstance(value, bool) and declared != "bool"
        if is_wrong_bool or not isinstance(value, _TYPES[declared]):
            if field.name == "memory_limit_bytes":
                raise SpecError(field.name, f"must be {BYTES_ALLOWED}")
            raise SpecError(field.name, f"must be {_TYPE_WORDS.get(declared, 'a whole number')}")


CHOICES: dict[str, tuple[str, ...]] = {
    "model": workload_ids(),
    "precision": PRECISIONS,
    "optimizer": OPTIMIZERS,
    "mode": MODES,
}


def _check_choices(spec: RunSpec) -> None:
    for name, allowed in CHOICES.items():
        value = getattr(spec, name)
        if value not in allowed:
            raise SpecError(name, f"{value[:80]!r} is not offered; one of {', '.join(allowed)}")


RANGES: dict[str, tuple[float, float]] = {
    "sequence_length": (1, 1_000_000),
    "image_size": (1, 100_000),
    "current_batch_size": (1, MAX_BATCH_SIZE),
    "memory_limit_bytes": (1, 2**50),
    "start_batch_size": (1, MAX_BATCH_SIZE),
    "max_batch_size": (1, MAX_BATCH_SIZE),
    "time_budget_seconds": (1, 7 * 86_400),
    "soak_steps": (1, 10_000),
    "reserve_fraction": (0, 0.5),
    "price_per_hour_usd": (0, 100_000),
    "hours_per_run": (0, 100_000),
    "runs_per_year": (0, 10_000_000),
}


def check_precision(precision: str, device_name: str, compute_capability: tuple[int, int] | None) -> None:
    """Raise SpecError for a precision that such a device cannot do. A capability of None: no NVIDIA card."""
    least = ".".join(map(str, AMPERE))
    is_older = compute_capability is not None and compute_capability < AMPERE
    if precision == "tf32" and (compute_capability is None or is_older):
        raise SpecError("precision", f"tf32 needs a CUDA GPU of compute capability {least} or later, not {device_name}")
    if precision == "bf16" and is_older:
        raise SpecError(
            "precision", f"bf16 needs compute capability {least} or later; {device_name} has {compute_capability}"
        )


def _check_device(spec: RunSpec) -> None:
    if not DEVICE_NAMES.fullmatch(spec.device):
        raise SpecError("device", f"{spec.device[:80]!r} is not a device; auto, cuda, cuda:N, xpu, xpu:N, mps or cpu")
    if not spec.device.startswith(("cuda", "auto")):
        check_precision(spec.precision, spec.device, None)


def _check_numbers(spec: RunSpec) -> None:
    for name, (low, high) in RANGES.items():
        value = getattr(spec, name)
        if value is not None and not low <= value <= high:  # NaN and the infinities are not, either
            raise SpecError(name, f"{str(value)[:40]} is out of range; from {low:g} to {high:,.0f}")
    if spec.start_batch_size is not None and spec.start_batch_size > spec.max_batch_size:
        raise SpecError("start_batch_size", f"must not be above max_batch_size ({spec.max_batch_size})")


def _check_workload(spec: RunSpec) -> None:
    workload = spec.workload
    other = "image_size" if workload.is_text else "sequence_length"
    if getattr(spec, other) is not None:
        raise SpecError(other, f"{workload.id} has no such setting; it takes {workload.input_field}")
    low, high = workload.input_sizes
    if not low <= spec.input_size <= high:
        raise SpecError(workload.input_field, f"{workload.id} takes {low} to {high}")
    if spec.input_size % workload.input_multiple_of:
        raise SpecError(workload.input_field, f"{workload.id} takes multiples of {workload.input_multiple_of}")
    if spec.gradient_checkpointing and not workload.has_gradient_checkpointing:
        raise SpecError("gradient_checkpointing", f"{workload.id} has no gradient checkpointing")
    if spec.pretrained and workload.huggingface_id is None:
        raise SpecError("pretrained", f"{workload.id} has no pretrained weights on the hub")
    limit = spec.memory_limit_bytes
    if limit is not None and limit < spec.fixed_bytes:
        raise SpecError(
            "memory_limit_bytes",
            f"{format_bytes(limit)} is below what {workload.id} with optimizer {spec.optimizer} holds at any batch "
            f"size: {format_bytes(spec.fixed_bytes)} of weights, gradients and optimizer state; give more",
        )
