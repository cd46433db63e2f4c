"""Counts the parameters of a config's model, built on the meta device without weights, in a separate process.

    python -m engine.measurement.count_parameters < SPEC   -> {"parameters": 1235814400} or {"error": {...}}

Its parent, `engine.trainings.catalogue.counted`, limits time and memory: a config can describe a model of any size.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from ..errors import EngineError, SpecError
from ..machine.parent import die_with_parent, prefer_as_oom_victim
from ..settings.spec import RunSpec


def main() -> None:
    die_with_parent()
    prefer_as_oom_victim()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print goes to standard error
    try:
        answer: dict[str, Any] = {"parameters": count(RunSpec.from_dict(json.load(sys.stdin)))}
    except EngineError as error:
        answer = {"error": error.to_dict()}
    out.write(json.dumps(answer) + "\n")
    out.flush()


def count(spec: RunSpec) -> int:
    """Build the model without memory for its weights, and count its parameters. Raises SpecError."""
    import torch

    from .torchvision_schemas import import_torchvision
    from .workloads import build_model

    import_torchvision()
    transformers = importlib.import_module("transformers")
    workload = spec.workload
    for name in (workload.model_class, workload.config_class):
        if not hasattr(transformers, name):
            raise SpecError("config", f"the installed transformers {transformers.__version__} has no {name}")
    try:
        with torch.device("meta"):
            model = build_model(spec)
    except Exception as exc:
        reason = f"{type(exc).__name__}: {str(exc).strip()[:500]}"
        raise SpecError("config", f"{workload.model_class} cannot be built of it: {reason}") from exc
    return sum(parameter.numel() for parameter in model.parameters())


if __name__ == "__main__":
    main()
