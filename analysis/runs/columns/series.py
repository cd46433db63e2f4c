"""PURE: which series a run belongs to. Runs of one series are comparable over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from engine.settings.catalog import WORKLOADS
from engine.settings.spec import DEFAULTS, TRAINING_SETTINGS
from engine.trainings.script.ranked_command import name_of


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """One workload, its settings and a card: runs that agree in all of these are comparable over time.

    `settings` has a value for each of TRAINING_SETTINGS, in order; `input_size` is in tokens or pixels, None for an own
    script. Runs with emulated ranks are comparable with each other alone.
    """

    model: str
    gpu: str
    settings: tuple[tuple[str, Any], ...]
    input_size: int | None = None
    memory_limit_bytes: int | None = None
    is_own_script: bool = False
    emulate_ranks: int | None = None

    @classmethod
    def of_run(cls, spec: Mapping[str, Any], gpu: str) -> SeriesKey:
        """Return the series of a stored run; a setting missing in its spec has the default."""
        where: dict[str, Any] = {
            "memory_limit_bytes": spec.get("memory_limit_bytes"),
            "emulate_ranks": spec.get("emulate_ranks"),
        }
        if trained := spec.get("catalogue"):
            spec = {**DEFAULTS, **trained}
        if spec.get("precision") is None:  # the spec of an own script: every other one names it
            return cls(spec["model"], gpu, (), None, **where, is_own_script=True)
        return cls(
            model=spec["model"],
            gpu=gpu,
            settings=tuple((name, spec.get(name) or DEFAULTS[name]) for name in TRAINING_SETTINGS),
            input_size=spec.get("sequence_length") or spec.get("image_size") or default_input_size(spec["model"]),
            **where,
        )

    @property
    def model_of_runs(self) -> str:
        named = {**dict(self.settings), "model": self.model}
        return name_of(named) if named.get("strategy") else self.model

    @property
    def parameters(self) -> dict[str, Any]:
        """Return what all runs of the series have in common, by the names of the API."""
        limits: dict[str, Any] = {"input_size": self.input_size, "memory_limit_bytes": self.memory_limit_bytes}
        if self.emulate_ranks is not None:
            limits["emulate_ranks"] = self.emulate_ranks
        return {"model": self.model, "gpu": self.gpu, **dict(self.settings), **limits}

    @property
    def address(self) -> str:
        defaults = {**DEFAULTS, "input_size": default_input_size(self.model), "model": None}
        given = {name: value for name, value in self.parameters.items() if value != defaults.get(name)}
        if self.is_own_script:
            given["own_script"] = True
        if self.model in WORKLOADS and "input_size" in given:  # the name that it has everywhere else
            given[WORKLOADS[self.model].input_field] = given.pop("input_size")
        return "?" + urlencode({name: "1" if value is True else value for name, value in given.items()})


def default_input_size(model: str) -> int | None:
    """Return a model's default input size; None for a model that is no longer offered."""
    return WORKLOADS[model].default_input_size if model in WORKLOADS else None
