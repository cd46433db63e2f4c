"""`python -m engine mcp`: the commands as tools of a coding agent, by the Model Context Protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from ..errors import EngineError
from ..program import IMPORTED_FROM, INSTALLED, PROGRAM
from .command import Command

HELP = f"""Serve fit, estimate, tune, check and explain to a coding agent by the Model Context Protocol.

Needs the package mcp: {INSTALLED}[mcp].

\b
{PROGRAM} mcp
"""
INSTRUCTIONS = (
    "Memory of PyTorch trainings. `fit` and `estimate` predict, and say so: nothing runs. `tune` runs the user's own "
    "script many times, for minutes, and proves the largest batch size. `check` compares two results; `explain` "
    "reads what a dead training left. "
    "Quote a figure with the word that stands with it: estimated, measured or certified."
)
_ENGINE = __package__.rpartition(".")[0]
_START = f"import sys; sys.path[:0] = [{str(IMPORTED_FROM)!r}]; from {_ENGINE}.cli.main import main; sys.exit(main())"
SAID_LINES = 20


def fit(training: str, gpus: str = "", options: list[str] | None = None) -> dict[str, Any]:
    """Say which GPUs train a model of the catalogue, or a file of axolotl, LLaMA-Factory, TRL, ms-swift or torchtune.

    `gpus` are ids with commas, else all. `options` are further ones of the command line, such as ["--batch-size", "8"].
    Exit status: 0 fits, 1 does not, 2 wrong question.
    """
    return _answer("fit", training, *(("--gpu", gpus) if gpus else ()), *(options or ()), "--json")


def estimate(model: str, gpus: str, options: list[str] | None = None) -> dict[str, Any]:
    """Predict memory and the largest batch size of a model of the catalogue on GPUs (ids with commas, or all)."""
    return _answer("estimate", model, "--gpu", gpus, *(options or ()), "--json")


def tune(command: list[str], options: list[str] | None = None) -> dict[str, Any]:
    """Run a script at many batch sizes and prove the largest; {batch_size} in it stands for the size.

    `options` are of the command line, such as ["--device", "cuda:0", "--current-batch-size", "16"]. Takes minutes.
    """
    return _answer("tune", *(options or ()), "--json", "--", *command)


def check(result: str, baseline: str, options: list[str] | None = None) -> dict[str, Any]:
    """Compare a result's file with a baseline's. Exit status: 0 no regression, 7 a regression, 2 not comparable."""
    return _answer("check", result, "--baseline", baseline, *(options or ()))


def explain(text: str) -> dict[str, Any]:
    """Say why a training died, by its traceback, log or scheduler's output. "cannot_tell" is an answer."""
    return _answer("explain", "-", "--json", given=text)


TOOLS = (fit, estimate, tune, check, explain)


def _answer(*arguments: str, given: str = "") -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _START, *arguments],
        input=given,  # else it would read the agent's own stream
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stderr.strip().splitlines()[-SAID_LINES:]
    try:
        return {"exit_status": done.returncode, "result": json.loads(done.stdout), "said": said}
    except ValueError:
        return {"exit_status": done.returncode, "result": done.stdout.strip() or None, "said": said}


def _mcp(_: SimpleNamespace) -> int:
    try:
        from mcp.server import MCPServer
    except ImportError as exc:
        raise EngineError(f"the package mcp is not installed for {sys.executable}: {INSTALLED}[mcp]") from exc
    server = MCPServer(INSTALLED, instructions=INSTRUCTIONS)
    for tool in TOOLS:
        server.add_tool(tool)
    server.run("stdio")
    return 0


COMMAND = Command("mcp", _mcp, params=[], help=HELP, epilog="Ends when the agent closes its stream.")
