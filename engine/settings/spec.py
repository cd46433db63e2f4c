"""What is requested: workload, settings, device, limits. All readers take labels and bounds from its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Protocol

from ..errors import SpecError
from ..text.today import DEFAULT_BATCH_SIZE
from ..text.units import BYTES_ALLOWED, GIB, format_bytes, sentence_case
from .rank_settings import check_compares
from .ranks.emulation import EmulatedRank
from .setting import Role, setting
from .spec_checks import settings_of, value_types
from .training_ranks import check_measured
from .training_spec import TrainingSpec

SCHEMA = 1
MEMORY_STEPS = 3  # full optimizer steps of a probe: with Adam the second one needs more memory than the first
SOAK_STEPS, SOAK_STEPS_CPU = 20, 5
RESERVE_FRACTION = 0.05
"""Share of the memory limit that the recommended size leaves free by default. A repeated training differs far less than
this between fresh processes, but a real one also meets longer batches, evaluation, fragmentation over hours and
libraries that load kernels late. It is a convention, not a measured bound."""

MAX_BATCH_SIZE = 1_048_576
CPU_DEFAULT_LIMIT_BYTES = 4 * GIB
"""The budget of a CPU run without a memory limit: a CPU has no dedicated memory to fill."""


class SearchSpec(Protocol):
    """The fields that every search reads from its spec: limits, today's size, and assumptions about costs."""

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
    def time_budget_seconds(self) -> float: ...
    @property
    def check_batch_size(self) -> int | None: ...
    @property
    def reserve_fraction(self) -> float: ...
    @property
    def reserve_bytes(self) -> int | None: ...
    @property
    def price_per_hour_usd(self) -> float: ...
    @property
    def hours_per_run(self) -> float: ...
    @property
    def runs_per_year(self) -> int: ...
    @property
    def emulated_ranks(self) -> tuple[EmulatedRank, ...]: ...
    @property
    def starts_anew(self) -> bool:
        """Whether each probe is a start of a training, so that two of one size show how far starts differ."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class RunSpec(TrainingSpec):
    """One analysis, ready to run. Raises SpecError, naming the field, for anything not allowed.

    Sizes are bytes, times seconds, prices US dollars. `None` means: the workload's or the engine's default.
    """

    starts_anew: ClassVar = False

    current_batch_size: int = setting(
        Role.TODAY,
        "Your batch size today",
        "Batch size you train with today. Waste and speed-up are measured against it.",
        default=DEFAULT_BATCH_SIZE,
        hint="The speed-up and the waste are measured against it.",
        bounds=(1, MAX_BATCH_SIZE),
    )
    memory_limit_bytes: int | None = setting(
        Role.LIMIT,
        "Memory limit",
        "Memory that the training may use, such as 24GiB. "
        f"{sentence_case(BYTES_ALLOWED)}. Left out: all of the device's, on a CPU 4 GiB.",
        hint="Optional: pretend the device is smaller, such as 24GiB.",
        bounds=(1, 2**50),
        option="--memory-limit",
    )
    start_batch_size: int | None = setting(
        Role.LIMIT,
        "First batch size tried",
        "First batch size tried. Left out: the engine chooses.",
        bounds=(1, MAX_BATCH_SIZE),
        option="--start",
    )
    max_batch_size: int = setting(
        Role.LIMIT,
        "Largest batch size tried",
        "Largest batch size tried. The search goes no further.",
        default=65_536,
        bounds=(1, MAX_BATCH_SIZE),
        option="--max",
    )
    check_batch_size: int | None = setting(
        Role.LIMIT,
        "Batch size to check",
        "Only answer whether this batch size trains. It alone is run, in a fresh process. Left out: search the limit.",
        bounds=(1, MAX_BATCH_SIZE),
        option="--fits",
        is_in_form=False,
    )
    time_budget_seconds: float = setting(
        Role.LIMIT,
        "Time budget",
        "Seconds after which the search ends with what it knows. A server may allow less than this.",
        default=1800.0,
        hint="The search stops after it; a limit it has not found by then is not certified.",
        bounds=(1, 7 * 86_400),
        option="--time-budget",
        metavar="SECONDS",
    )
    soak_steps: int | None = setting(
        Role.LIMIT,
        "Steps of the soak run",
        "Optimizer steps of the soak run. The largest size trains them in a fresh process. Left out: 20, on a CPU 5.",
        bounds=(1, 10_000),
    )
    reserve_fraction: float = setting(
        Role.LIMIT,
        "Memory left free, at least",
        "Share of the memory, from 0 to 0.5, that a recommended size leaves free; as an option also bytes, as 10GiB. "
        "Longer batches, evaluation and fragmentation over hours take more than the steps that are measured.",
        default=RESERVE_FRACTION,
        hint="A recommended size leaves at least this: a long training meets more than the steps measured here.",
        bounds=(0, 0.5),
        option="--reserve",
        metavar="SHARE|SIZE",
    )
    reserve_bytes: int | None = setting(
        Role.LIMIT,
        "Memory left free, in bytes",
        "Bytes that a recommended size leaves free, as 10GiB for an engine of rollouts beside the training. "
        "Left out: the share.",
        hint="Such as 10GiB, for another program beside the training. It stands in place of the percentage.",
        bounds=(1, 2**50),
        option="--reserve",
    )
    price_per_hour_usd: float = setting(
        Role.ASSUMPTION,
        "Price per hour",
        "Price of the device per hour in US dollars, assumed. Left out: the device's own price, where one is set.",
        default=0.60,
        hint="Price of the device. Empty: the device’s own price, where one is set.",
        bounds=(0, 100_000),
        option="--price-per-hour",
        metavar="USD",
    )
    hours_per_run: float = setting(
        Role.ASSUMPTION,
        "Hours per training run",
        "Hours of one training run at today's batch size, assumed.",
        default=2.0,
        hint="How long one training takes you today.",
        bounds=(0, 100_000),
        metavar="HOURS",
    )
    runs_per_year: int = setting(
        Role.ASSUMPTION,
        "Training runs per year",
        "Training runs per year, assumed.",
        default=100,
        hint="How often you start such a training.",
        bounds=(0, 10_000_000),
    )
    compare_speed: bool = True
    """Whether speeds are compared: without that no size is recommended. Requested as a member of `RankStarts`."""

    def __post_init__(self) -> None:
        check_compares(self.compare_speed)
        TrainingSpec.__post_init__(self)
        check_start(self.start_batch_size, self.max_batch_size)
        check_reserve(self.reserve_bytes, self.memory_limit_bytes)
        if (self.check_batch_size or 0) > self.max_batch_size:
            raise SpecError("check_batch_size", f"must not be above max_batch_size ({self.max_batch_size:,})")
        limit = self.memory_limit_bytes
        if limit is not None and limit < self.fixed_bytes:
            raise SpecError(
                "memory_limit_bytes",
                f"{format_bytes(limit)} is below what {self.workload.id} with optimizer {self.optimizer} holds at any "
                f"batch size: {format_bytes(self.fixed_bytes)} of weights, gradients and optimizer state; give more",
            )


def measured_spec(data: object) -> RunSpec:
    """Read what is to be measured, or was. Raises SpecError, also for several GPUs."""
    spec = RunSpec.from_dict(data)
    check_measured(spec)
    return spec


VALUE_TYPES = {name: each.kind for name, each in value_types(RunSpec).items()}
"""str, bool, int or float, by setting."""
SETTINGS = settings_of(RunSpec)
DEFAULTS = {each.name: each.default for each in fields(RunSpec) if each.default is not MISSING}
CHOICES = {name: tuple(each.choices) for name, each in SETTINGS.items() if each.choices and not each.text_values}
"""The values of settings that take no others."""
RANGES = {name: each.bounds for name, each in SETTINGS.items() if each.bounds}
TRAINING_SETTINGS = tuple(name for name, each in SETTINGS.items() if each.role is Role.TRAINING)


def trained_settings(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored spec's settings of a catalogue model; where ranks train, those of each rank."""
    trained = spec.get("catalogue")
    return {**DEFAULTS, **trained} if trained else spec


def shared_setting(name: str) -> Any:
    return field(default=DEFAULTS[name], metadata={"setting": SETTINGS[name]})


def soak_steps(given: int | None, device_kind: str | None) -> int:
    return given or (SOAK_STEPS_CPU if device_kind == "cpu" else SOAK_STEPS)


def check_start(start_batch_size: int | None, max_batch_size: int) -> None:
    """Raise SpecError where the search would have to begin above its end."""
    if start_batch_size is not None and start_batch_size > max_batch_size:
        raise SpecError("start_batch_size", f"must not be above max_batch_size ({max_batch_size:,})")


def check_reserve(reserve_bytes: int | None, limit_bytes: int | None) -> None:
    """Raise SpecError where the reserve would leave a training nothing of the memory, as far as that is known."""
    if reserve_bytes is not None and limit_bytes is not None and reserve_bytes >= limit_bytes:
        asked, limit = format_bytes(reserve_bytes), format_bytes(limit_bytes)
        raise SpecError("reserve_bytes", f"{asked} must be below the {limit} that the training may take")
