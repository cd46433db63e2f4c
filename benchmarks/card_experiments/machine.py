"""Program: what the card and the software are, as JSON. In a process of its own, so that the caller opens no card."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import pynvml
import torch

from benchmarks.card_experiments.answers import is_stand_in
from benchmarks.card_experiments.setting import Machine
from engine.errors import EngineError
from engine.machine import nvml
from engine.measurement.device import facts_of


def main() -> int:
    try:
        facts = facts_of(sys.argv[1])
    except EngineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    machine = Machine(
        gpu=facts.name,
        uuid=facts.uuid,
        total_bytes=facts.capacity_bytes,
        compute_capability=facts.compute_capability,
        driver=facts.driver,
        torch=torch.__version__,
        cuda=torch.version.cuda,
        cudnn=torch.backends.cudnn.version(),
        transformers=_version("transformers"),
        python=platform.python_version(),
        is_stand_in=is_stand_in(),
        settings=nvml.settings(pynvml, facts.uuid),
    )
    print(json.dumps(machine.to_dict()))
    return 0


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
