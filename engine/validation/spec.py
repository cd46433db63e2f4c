"""What is requested: one model with its settings, which of the two validations, and how far gradients may differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..catalog import workload_ids
from ..catalog.from_config import CONFIG
from ..errors import SpecError
from ..setting import Role, Setting, setting
from ..spec import RunSpec, check_settings, memory_limit_bytes
from ..training_spec import PURE_BF16, TrainingSpec, check_training, take_config

BACKWARD, COMPILE = "backward", "compile"
CHECKS = {
    BACKWARD: "Backward pass: is it in the memory figures, and are its gradients right?",
    COMPILE: "torch.compile: does it train the same, and faster?",
}
SHORT_NAMES = {BACKWARD: "backward pass", COMPILE: "torch.compile"}
BATCH_SIZE = 8
BATCH_SIZE_MAX = 4096
GRADIENT_TOLERANCES = {"fp32": 0.001, "tf32": 0.01, "bf16": 0.02, "fp16": 0.01, PURE_BF16: 0.05}
"""By precision: how far all gradients together may be from the reference, as a fraction of its length (2-norm)."""
REFERENCES = {"fp32": "fp64"}
"""The precision that gradients are compared with; fp32 for every other one."""
_OF_RUN = {each.name: each for each in fields(RunSpec)}


def reference_of(precision: str) -> str:
    """Return the precision whose gradients count as right: the next more exact one."""
    return REFERENCES.get(precision, "fp32")


@dataclass(frozen=True, slots=True)
class ValidationSpec(TrainingSpec):
    """One validation. Raises SpecError, naming the field, for anything not allowed."""

    check: str = setting(Role.WORKLOAD, "Validate", "backward or compile.", default=BACKWARD, choices=CHECKS)
    batch_size: int = setting(
        Role.TODAY,
        "Batch size",
        "Samples of each step that is compared.",
        default=BATCH_SIZE,
        bounds=(1, BATCH_SIZE_MAX),
    )
    gradient_tolerance: float | None = setting(
        Role.LIMIT,
        "Gradients may differ by",
        "How far the gradients may be from those of the reference, as a fraction: 0.02 is 2 %. "
        "null: 0.1 % for fp32, 1 % for tf32 and fp16, 2 % for bf16, 5 % for bf16-pure.",
        default=None,
        hint="In percent of the reference. Empty: 0.1 % for fp32, 1 % for tf32 and fp16, 2 % for bf16, 5 % for pure.",
        bounds=(0, 1),
    )
    memory_limit_bytes: int | None = field(default=None, metadata=_OF_RUN["memory_limit_bytes"].metadata)
    time_budget_seconds: float = setting(
        Role.LIMIT,
        "Time budget",
        "What is not reached within it stays open.",
        default=1800.0,
        bounds=(1, 7 * 86_400),
    )

    def __post_init__(self) -> None:
        take_config(self)
        for name, (kind, label) in _OWN_TYPES.items():
            value = getattr(self, name)
            is_none_allowed = value is None and name == "gradient_tolerance"
            if not is_none_allowed and (isinstance(value, bool) or not isinstance(value, kind)):
                raise SpecError(name, f"must be {label}")
            _check_offered(name, value)
        check_settings(self, [each.name for each in fields(self) if each.name in _OF_RUN])
        check_training(self)
        if self.expandable_segments:  # PyTorch reads that when its process starts, which here has started already
            raise SpecError("expandable_segments", "makes no difference to what is validated; leave it out")

    @property
    def tolerance(self) -> float:
        """How far gradients may differ: as requested, or what is usual for the precision."""
        given = self.gradient_tolerance
        return GRADIENT_TOLERANCES[self.precision] if given is None else given

    def run_spec(self) -> RunSpec:
        """Return the training that is validated, as the engine measures it."""
        shared = {name: getattr(self, name) for name in _OF_RUN if name in SETTINGS}
        return RunSpec(**shared, current_batch_size=self.batch_size)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> ValidationSpec:
        """Build a spec from JSON. `memory_limit_bytes` may be text such as "24GiB"."""
        if not isinstance(data, dict):
            raise SpecError("spec", "must be a JSON object")
        for key in data:
            if key not in SETTINGS:
                raise SpecError(str(key)[:80], f"unknown key; allowed are {', '.join(SETTINGS)}")
        if "model" not in data and "config" not in data:
            raise SpecError("model", f"is required; one of {', '.join(workload_ids())}")
        data = {"model": CONFIG, **data}
        if isinstance(limit := data.get("memory_limit_bytes"), str):
            data = {**data, "memory_limit_bytes": memory_limit_bytes(limit)}
        return cls(**data)


SETTINGS: dict[str, Setting] = {each.name: each.metadata["setting"] for each in fields(ValidationSpec)}
_OWN_TYPES: dict[str, tuple[Any, str]] = {
    "check": (str, f"one of {', '.join(CHECKS)}"),
    "batch_size": (int, "a whole number"),
    "gradient_tolerance": ((int, float), "a number"),
}


def _check_offered(name: str, value: Any) -> None:
    each = SETTINGS[name]
    if each.choices and value not in each.choices:
        raise SpecError(name, f"{value[:80]!r} is not offered; one of {', '.join(each.choices)}")
    if each.bounds and value is not None and not each.bounds[0] <= value <= each.bounds[1]:
        raise SpecError(name, f"{str(value)[:40]} is out of range; from {each.bounds[0]:g} to {each.bounds[1]:,.0f}")
