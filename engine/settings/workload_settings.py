"""What is trained and where: the settings that choose a model, the size of its inputs, and a device."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, replace
from typing import Any, Self

from .catalog import WORKLOADS, Workload, workload_ids
from .catalog.from_config import CONFIG, TASKS, read_config
from .setting import Role, setting

OF_CONFIG = ("config", "task", "config_parameters")
"""Settings of a config, which a command line takes as a file."""
PARAMETERS_MAX = 10**12
"""The largest number of parameters that a config may describe: a larger model is out of reach for one device."""
DEVICE_KINDS = ("cuda", "xpu", "mps", "cpu")
HAS_OWN_MEMORY = ("cuda", "xpu")
"""Kinds of devices whose memory is not the host's."""
DEVICE_NAMES = re.compile(r"auto|(?:cuda|xpu)(?::\d{1,3})?|mps(?::0)?|cpu", re.ASCII)


@dataclass(frozen=True)
class WorkloadSettings:
    model: str = setting(
        Role.WORKLOAD,
        "Model",
        "What is trained: an id of /api/v1/models/, or config, with a config of your own.",
        default=MISSING,
        choices={w: w for w in (*workload_ids(), CONFIG)},
    )
    device: str = setting(
        Role.PLACE,
        "Device",
        "Where: auto (the best device), a kind (cuda, xpu, mps: any of it), or one device such as cuda:1.",
        default="auto",
    )
    sequence_length: int | None = setting(
        Role.WORKLOAD,
        "Sequence length",
        "Tokens per sample of a text model. Left out: the model's own.",
        bounds=(1, 1_000_000),
    )
    image_size: int | None = setting(
        Role.WORKLOAD,
        "Image size",
        "Side of the square image, in pixels. For image models. Left out: the model's own.",
        bounds=(1, 100_000),
    )
    config: str | None = setting(
        Role.WORKLOAD,
        "Config",
        "The config.json of a Hugging Face model, as an object or as text, with the model config; weights are random.",
        is_in_form=False,
    )
    task: str | None = setting(
        Role.WORKLOAD,
        "Task of the config",
        f"What a model of that config is trained for: {', '.join(TASKS)}.",
        is_in_form=False,
    )
    config_parameters: int | None = setting(
        Role.WORKLOAD,
        "Parameters of the config",
        "Counted by the engine when the run starts. Left out: not counted yet.",
        bounds=(1, PARAMETERS_MAX),
        is_in_form=False,
    )

    @property
    def workload(self) -> Workload:
        if self.config is None:
            return WORKLOADS[self.model]
        return read_config(self.config, self.task).workload(self.config_parameters)

    @property
    def input_size(self) -> int:
        """Tokens per sample, or the side of the square image in pixels."""
        size = self.sequence_length if self.workload.is_text else self.image_size
        return self.workload.default_input_size if size is None else size

    def with_input_size(self, size: int) -> Self:
        changed: dict[str, Any] = {self.workload.input_field: size}
        return replace(self, **changed)
