"""The command line: `python -m engine bert`. Works with no Django and no database.

    python -m engine bert [cuda|mps|cpu] [options]   measure, print live lines and the result
    python -m engine bert --json                     the result as one JSON document
    python -m engine bert --fits 32                  does batch 32 train here? exit 0 yes, 3 no
    python -m engine --spec '{"model": "bert"}' --events   JSON lines, one per event (what the portal reads)
    python -m engine tune -- python train.py --batch-size {batch_size}   the same of your own training command
    python -m engine estimate bert --gpu a10         predict it for a card, or --gpu all, with no GPU at hand
    python -m engine fit bert --batch-size 64 --as slurm   which cards train it, and the request for one; or k8s
    python -m engine --config config.json --task text-generation   a model of your own config; estimate too
    python -m engine advise result.json              what to paste: exact global batch, learning rate, code
    python -m engine check result.json --baseline main.json   stop a pipeline where a training got worse
    python -m engine gpus [--json]                   the cards that can be estimated for
    python -m engine calibrate [device] [--json]     measure a card's own constants, for estimates
    python -m engine devices [--json]                what this machine can measure on
    python -m engine models [--json]                 what can be measured
    python -m engine sync memorymark-runs/           send stored runs to a portal, see --report-to
    python -m engine --version                       of MemoryMark
    python -m engine validate bert --precision bf16  is the backward pass in the figures, are its gradients right
    python -m engine validate bert --check compile   does torch.compile train the same, and faster
    python -m engine --validate [model]              the second for bert, gpt2 and resnet, or for this model
    python -m engine --validate-backward [model]     the first

`--resume -` reads the probes of an interrupted attempt from standard input; `--result-file` also writes the result
to a file, in case the reader of the output dies. docs/api.md describes both, and every event.

Exit status: 0 ok, 1 failed, 2 bad arguments, 3 does not fit at batch 1 (or at the size of --fits),
4 device not available, or held by others, 5 time budget spent, 6 pretrained weights not available, 7 cannot be
estimated, or of `check` a regression, 8 `sync` could not bring everything, 9 a command that cannot be tuned,
130 interrupted, 141 nobody reads the output any more (as after `| head -1`), 143 stopped by SIGTERM.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from functools import partial
from typing import Any, NoReturn

from ..errors import WorkloadFailed
from ..program import MODELS_NEED, not_installed
from .output import run_command

COMMANDS = {
    "advise": "advise",
    "calibrate": "calibrate",
    "check": "check",
    "devices": "listings",
    "estimate": "estimate",
    "fit": "fit",
    "gpus": "gpus",
    "models": "listings",
    "sync": "sync",
    "tune": "tune",
    "validate": "validate",
}
"""The module of each command; any other word is a model to measure."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    signal.signal(signal.SIGTERM, _stop)
    return run_command(partial(_command, sys.argv[1:] if argv is None else argv))


def _command(arguments: list[str]) -> int:
    name = arguments[0] if arguments else ""
    if name not in COMMANDS:
        from .measure import measure_command

        assert __doc__ is not None
        return measure_command(arguments, description=__doc__)
    module: Any = importlib.import_module(f"{__package__}.{COMMANDS[name]}")
    try:
        return int(module.main(arguments if COMMANDS[name] == "listings" else arguments[1:]))
    except ModuleNotFoundError as error:
        if error.name not in MODELS_NEED:
            raise
        sys.stderr.write(f"error: {not_installed(error.name)}\n")
        return WorkloadFailed.exit_status


def _stop(*_: object) -> NoReturn:
    os.write(sys.stderr.fileno(), b"stopped: no result is stored\n")  # not by print, whose buffer may be in use
    raise SystemExit(128 + signal.SIGTERM)
