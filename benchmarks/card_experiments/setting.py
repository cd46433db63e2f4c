"""PURE: what an experiment is, what it is run on, and at which scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from engine.text.units import GIB

Seen = Mapping[str, Any]
"""What a part saw, as JSON; with `error` in it where it failed, and `timed_out` where it was cut short."""


class Verdict(StrEnum):
    """What an experiment came to."""

    AS_EXPECTED = "as expected"
    DIFFERS = "differs"
    NOT_RUN = "could not be run"
    SAYS_NOTHING = "says nothing on the stand-in"


@dataclass(frozen=True)
class Judgement:
    """A verdict, what was seen in a sentence, and what it means where it is not as expected."""

    verdict: Verdict
    seen: str
    meaning: str = ""


class CannotRun(Exception):
    """Why an experiment has nothing to run on, in a sentence."""


@dataclass(frozen=True)
class Machine:
    """The card and the software that an answer is of. `is_stand_in`: the card is made up, and so is every figure."""

    gpu: str
    uuid: str | None
    total_bytes: int
    compute_capability: str | None
    driver: str | None
    torch: str
    cuda: str | None
    cudnn: int | None
    transformers: str | None
    python: str
    is_stand_in: bool
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def capability(self) -> tuple[int, int] | None:
        if self.compute_capability is None:
            return None
        major, minor = self.compute_capability.split(".")
        return int(major), int(minor)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What must be equal in one file of answers; another card of the same kind may go on with it."""
        return self.gpu, self.total_bytes, self.driver, self.torch, self.is_stand_in

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Scale:
    """How large the experiments are, and how much of their parts' seconds they take then."""

    name: str
    seconds_fraction: float
    transformer: str
    cnn: str
    calibrations: int
    kills: int
    patterns: int
    events: int
    predictions: tuple[tuple[str, str], ...]
    repeats: int
    loop_steps: int
    speed_seconds: float
    sustained_seconds: float
    classic: tuple[tuple[str, str], ...]


_PREDICTED = ("bert-base b32 s128", "gpt2 LM b8 s512", "resnet50 b64 224", "vit-b16 b32 224")

FULL = Scale(
    name="full",
    seconds_fraction=1.0,
    transformer="bert",
    cnn="resnet",
    calibrations=3,
    kills=20,
    patterns=20,
    events=600,
    predictions=tuple((name, precision) for name in _PREDICTED for precision in ("fp32", "bf16")),
    repeats=3,
    loop_steps=200,
    speed_seconds=15,
    sustained_seconds=60,
    classic=(
        ("bert", "forward_backward"),
        ("gpt2", "forward_backward"),
        ("resnet", "forward_backward"),
        ("gpt2", "adamw_bf16"),
        ("resnet", "adamw_bf16"),
    ),
)
QUICK = Scale(
    name="quick",
    seconds_fraction=0.3,
    transformer="bert-tiny",
    cnn="resnet18",
    calibrations=2,
    kills=3,
    patterns=2,
    events=200,
    predictions=(("bert-base b32 s128", "fp32"),),
    repeats=2,
    loop_steps=20,
    speed_seconds=2,
    sustained_seconds=3,
    classic=(("bert-tiny", "forward_backward"),),
)


@dataclass(frozen=True)
class Setting:
    """All that decides what is run and what is expected. `earlier` is what the parts so far saw, by number and part."""

    device: str
    machine: Machine
    scale: Scale
    earlier: Mapping[int, Mapping[str, Seen]] = field(default_factory=dict)

    @property
    def tenant_bytes(self) -> int:
        """What the uninvited tenant takes: 20 GiB, of smaller cards a quarter."""
        return min(20 * GIB, self.machine.total_bytes // 4)

    @property
    def held_bytes(self) -> int:
        """What the process holds that is killed: 60 GiB of a card of 80."""
        return self.machine.total_bytes * 3 // 4

    def result_of_six(self) -> Mapping[str, Any]:
        """The first result of experiment 6, on which others build."""
        result: Mapping[str, Any] | None = self.earlier.get(6, {}).get("run 1", {}).get("result")
        if result is None or not result["boundary"]["largest_batch_size"]:
            raise CannotRun("experiment 6 found no batch size to build on")
        return result


class Watch(StrEnum):
    """What is done while a part runs."""

    NOTHING = "nothing"
    PROCESS_MEMORY = "process memory"
    """The memory of processes as the driver counts it, while the soak runs."""
    CLOCKS = "clocks"
    TENANT = "tenant"
    """Another process takes memory when the first probe begins, and stays."""


@dataclass(frozen=True)
class Part:
    """A piece that runs as one; what it saw is kept before the next one begins.

    `command` is what stands after `python`. `seconds` is the most it should take at full scale: it is not begun with
    less time than that, unless nothing else was run yet.
    """

    name: str
    command: tuple[str, ...]
    seconds: float
    environment: Mapping[str, str] = field(default_factory=dict)
    watch: Watch = Watch.NOTHING

    @property
    def is_engine_run(self) -> bool:
        """Whether it prints the engine's events; other programs print one JSON document as their last line."""
        return self.command[:2] == ("-m", "engine") and self.command[-1] == "--events"

    @property
    def text(self) -> str:
        """What to type to run it by hand."""
        words = [f"{name}={value}" for name, value in self.environment.items()]
        words += ["python", *(f"'{word}'" if " " in word or "{" in word else word for word in self.command)]
        return " ".join(words)


@dataclass(frozen=True)
class Experiment:
    """A question to a card: what is run, what is expected, and what its answer means.

    `is_about_the_card`: the answer rests on times, or on what the driver does, which a made-up card cannot tell.
    """

    number: int
    name: str
    parts: Callable[[Setting], list[Part]]
    expected: Callable[[Setting], str]
    judge: Callable[[Mapping[str, Seen], Setting], Judgement]
    is_about_the_card: bool = False
