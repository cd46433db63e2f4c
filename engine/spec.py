"""What is requested: a workload, its settings, a device and the limits of the search.

A `RunSpec` is validated once, when it is made, and is everything needed to repeat a run. Each field is declared with
its label, choices and bounds; command line, form, filters, comparison and JSON Schema read them from here.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Protocol

from .errors import SpecError
from .setting import Role, setting
from .spec_checks import check_settings, settings_of, value_types
from .training_spec import TrainingSpec, check_training, take_config
from .units import BYTES_ALLOWED, GIB, format_bytes

SCHEMA = 1
MEMORY_STEPS = 3  # full optimizer steps of a probe: with Adam the second one holds more than the first
RESERVE_FRACTION = 0.05
"""Of the memory limit: what the recommended size leaves free by default. Between fresh processes the same training was
seen to differ by far less, but a real one also meets longer batches, evaluation, fragmentation over hours and libraries
that load kernels late. It is a convention and no measured bound."""

MAX_BATCH_SIZE = 1_048_576
CPU_DEFAULT_LIMIT_BYTES = 4 * GIB
"""The budget of a CPU run without a memory limit: a CPU has no memory of its own to fill."""


class SearchSpec(Protocol):
    """What every search needs of its spec, whatever is trained: its limits, today's size, and the assumptions."""

    @property
    def model(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def current_batch_size(self) -> int: ...
    @property
    def memory_limit_bytes(self) -> int | None: ...
    @property
    def max_batch_size(self) -> int: ...
    @property
    def check_batch_size(self) -> int | None: ...
    @property
    def reserve_fraction(self) -> float: ...
    @property
    def price_per_hour_usd(self) -> float: ...
    @property
    def hours_per_run(self) -> float: ...
    @property
    def runs_per_year(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class RunSpec(TrainingSpec):
    """One analysis, ready to run. Raises SpecError, naming the field, for anything not allowed.

    Sizes are bytes, times seconds, prices US dollars. `None` means: the workload's or the engine's default.
    """

    current_batch_size: int = setting(
        Role.TODAY,
        "Batch size today",
        "What you train with today: waste and speed-up are measured against it.",
        default=16,
        hint="The speed-up and the waste are measured against it.",
        bounds=(1, MAX_BATCH_SIZE),
        metavar="N",
    )
    memory_limit_bytes: int | None = setting(
        Role.LIMIT,
        "Memory limit",
        f"Hold the run below this: {BYTES_ALLOWED}. null: the device's own memory is the limit.",
        default=None,
        hint="Optional: pretend the device is smaller, such as 24GiB.",
        bounds=(1, 2**50),
    )
    start_batch_size: int | None = setting(
        Role.LIMIT,
        "First batch size tried",
        "The first size tried. null: the engine chooses.",
        default=None,
        bounds=(1, MAX_BATCH_SIZE),
    )
    max_batch_size: int = setting(
        Role.LIMIT,
        "Largest batch size tried",
        "The search goes no further than this.",
        default=65_536,
        bounds=(1, MAX_BATCH_SIZE),
    )
    check_batch_size: int | None = setting(
        Role.LIMIT,
        "Batch size to check",
        "Answer one question: does this size train here? It alone is run, in a fresh process. null: search the limit.",
        default=None,
        bounds=(1, MAX_BATCH_SIZE),
        is_in_form=False,
    )
    time_budget_seconds: float = setting(
        Role.LIMIT,
        "Time budget",
        "A search that takes longer ends with what it knows. A server may allow less than this.",
        default=1800.0,
        hint="The search stops after it; a limit it has not found by then is not certified.",
        bounds=(1, 7 * 86_400),
    )
    soak_steps: int | None = setting(
        Role.LIMIT,
        "Steps of the soak run",
        "Optimizer steps that the largest size must train in a fresh process. null: the engine's default.",
        default=None,
        bounds=(1, 10_000),
    )
    reserve_fraction: float = setting(
        Role.LIMIT,
        "Memory left free, at least",
        "What the recommended size leaves free of the memory limit: 0.05 is 5 %. "
        "Longer batches, evaluation and fragmentation over hours take more than the steps that are measured.",
        default=RESERVE_FRACTION,
        hint="The recommended size leaves at least this: a long training meets more than the steps measured here.",
        bounds=(0, 0.5),
    )
    price_per_hour_usd: float = setting(
        Role.ASSUMPTION,
        "Price per hour",
        "Assumed, for the savings. Left out: the device's own price, where one is set.",
        default=0.60,
        hint="Of the device. Left empty: the device’s own price where somebody set one.",
        bounds=(0, 100_000),
    )
    hours_per_run: float = setting(
        Role.ASSUMPTION,
        "Hours per training run",
        "Assumed: how long you train at today's batch size.",
        default=2.0,
        hint="How long one training takes you today.",
        bounds=(0, 100_000),
    )
    runs_per_year: int = setting(
        Role.ASSUMPTION,
        "Training runs per year",
        "Assumed: how often you train.",
        default=100,
        hint="How often you start such a training.",
        bounds=(0, 10_000_000),
    )

    def __post_init__(self) -> None:
        take_config(self)
        check_settings(self)
        check_start(self.start_batch_size, self.max_batch_size)
        if (self.check_batch_size or 0) > self.max_batch_size:
            raise SpecError("check_batch_size", f"must not be above max_batch_size ({self.max_batch_size})")
        check_training(self)
        self._check_memory_limit()

    def _check_memory_limit(self) -> None:
        limit = self.memory_limit_bytes
        if limit is not None and limit < self.fixed_bytes:
            raise SpecError(
                "memory_limit_bytes",
                f"{format_bytes(limit)} is below what {self.workload.id} with optimizer {self.optimizer} holds at any "
                f"batch size: {format_bytes(self.fixed_bytes)} of weights, gradients and optimizer state; give more",
            )


VALUE_TYPES = {name: each.kind for name, each in value_types(RunSpec).items()}
"""str, bool, int or float, by setting."""
OPTIONAL = frozenset(name for name, each in value_types(RunSpec).items() if each.is_optional)
"""The settings whose value may be None."""
SETTINGS = settings_of(RunSpec)
DEFAULTS = {each.name: each.default for each in fields(RunSpec) if each.default is not MISSING}
CHOICES = {name: tuple(each.choices) for name, each in SETTINGS.items() if each.choices}
RANGES = {name: each.bounds for name, each in SETTINGS.items() if each.bounds}
TRAINING_SETTINGS = tuple(name for name, each in SETTINGS.items() if each.role is Role.TRAINING)


def shared_setting(name: str) -> Any:
    """Declare a field of another kind of spec that a RunSpec has too: the same default, label and bounds."""
    return field(default=DEFAULTS[name], metadata={"setting": SETTINGS[name]})


def check_start(start_batch_size: int | None, max_batch_size: int) -> None:
    """Raise SpecError where the search would have to begin above its end."""
    if start_batch_size is not None and start_batch_size > max_batch_size:
        raise SpecError("start_batch_size", f"must not be above max_batch_size ({max_batch_size})")
