"""What is requested: one model with its settings, which of the two validations, and how far gradients may differ."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import SpecError
from ...settings.setting import Role, setting
from ...settings.spec import SETTINGS as RUN_SETTINGS
from ...settings.spec import RunSpec, shared_setting
from ...settings.spec_checks import settings_of
from ...settings.step_settings import ROUNDING_TOLERANCES
from ...settings.training_ranks import check_measured
from ...settings.training_spec import TrainingSpec

BACKWARD, COMPILE = "backward", "compile"
CHECKS = {
    BACKWARD: "Backward pass: is it in the memory figures, and are its gradients right?",
    COMPILE: "torch.compile: does it train the same, and faster?",
}
SHORT_NAMES = {BACKWARD: "backward pass", COMPILE: "torch.compile"}
BATCH_SIZE = 8
BATCH_SIZE_MAX = 4096
REFERENCES = {"fp32": "fp64"}
"""The precision that gradients are compared with; fp32 for every other one."""


def reference_of(precision: str) -> str:
    return REFERENCES.get(precision, "fp32")


@dataclass(frozen=True, slots=True)
class ValidationSpec(TrainingSpec):
    """One validation. Raises SpecError, naming the field, for anything not allowed."""

    check: str = setting(Role.WORKLOAD, "Validate", "What is validated.", default=BACKWARD, choices=CHECKS)
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
        "Share by which the gradients may differ from more exact ones; 0.02 is 2 %. "
        "Left out: 0.1 % for fp32, 1 % for tf32 and fp16, 2 % for bf16, 5 % for bf16-pure.",
        hint="In percent. Empty: 0.1 % for fp32, 1 % for tf32 and fp16, 2 % for bf16, 5 % for pure bf16.",
        bounds=(0, 1),
        metavar="SHARE",
    )
    memory_limit_bytes: int | None = shared_setting("memory_limit_bytes")
    time_budget_seconds: float = setting(
        Role.LIMIT,
        "Time budget",
        "Seconds after which checks that have not ended stay open.",
        default=1800.0,
        bounds=(1, 7 * 86_400),
        option="--time-budget",
        metavar="SECONDS",
    )

    def __post_init__(self) -> None:
        TrainingSpec.__post_init__(self)
        check_measured(self)
        if self.expandable_segments:  # PyTorch reads that when its process starts, which here has started already
            raise SpecError("expandable_segments", "makes no difference to what is validated; leave it out")

    @property
    def tolerance(self) -> float:
        """How far gradients may differ: as requested, or what is usual for the precision."""
        given = self.gradient_tolerance
        return ROUNDING_TOLERANCES[self.precision] if given is None else given

    def run_spec(self) -> RunSpec:
        shared = {name: getattr(self, name) for name in RUN_SETTINGS if name in SETTINGS}
        return RunSpec(**shared, current_batch_size=self.batch_size)


SETTINGS = settings_of(ValidationSpec)
