"""The settings of a RunSpec as options of a command line: the same terms for measuring and for estimating."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ..catalog.from_config import CONFIG, SIZE_BYTES_MAX, TASKS
from ..errors import SpecError
from ..program import PROGRAM, with_program
from ..setting import Role
from ..spec import DEFAULTS, SETTINGS, RunSpec

WAIT_REMEDY = "; --wait-for-device waits until it is free"
"""What helps where the device is busy."""


OF_CONFIG = ("config", "task", "config_parameters")
"""Settings of a config of one's own, which a command line takes as a file."""


def command_parser(name: str, text: str | None) -> argparse.ArgumentParser:
    """Return the parser of `memorymark NAME`, whose help begins with this text: the docstring of its module."""
    return argparse.ArgumentParser(
        prog=f"{PROGRAM} {name}",
        description=with_program(text or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add what every command that holds a device takes: where the result goes, and whether to wait."""
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print the result as one JSON document")
    output.add_argument("--events", action="store_true", help="print one JSON line per event")
    add = parser.add_argument
    add("--result-file", type=Path, metavar="PATH", help="also write the exit status and the result to this file")
    add("--wait-for-device", action="store_true", help="wait while another run holds the device, instead of failing")


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options of a model that a config.json describes."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="a Hugging Face config.json, in place of a model")
    parser.add_argument("--task", help=f"what a model of that config is trained for: {', '.join(TASKS)}")


def config_given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the config named on the command line; empty without one."""
    if options.config is None:
        return {} if options.task is None else {"task": options.task}
    if options.model is not None:
        raise SpecError("config", f"stands in place of a model; leave out {options.model}")
    try:
        with options.config.open("rb") as file:
            content = file.read(SIZE_BYTES_MAX + 1)  # a larger file is refused, and not read
        text = content.decode()
    except OSError as exc:
        raise SpecError("config", f"{options.config} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise SpecError("config", f"{options.config} is no text in UTF-8") from exc
    return {"model": CONFIG, "config": text, "task": options.task}


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options of the training settings. Their default is the spec's."""
    for name, each in SETTINGS.items():
        if each.role not in (Role.TRAINING, Role.WORKLOAD, Role.TODAY) or name in ("model", *OF_CONFIG):
            continue
        option = f"--{name.replace('_', '-')}"
        if DEFAULTS[name] is False:
            parser.add_argument(option, action="store_true", default=None, help=each.description)
        elif each.choices:
            parser.add_argument(option, help=" ".join(each.choices))
        else:
            parser.add_argument(option, type=int, metavar=each.metavar, help=each.description)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the limits of a search, and what its money assumes: the same for a model and for a command."""
    add = parser.add_argument
    add("--memory-limit", metavar="SIZE", help="pretend the device has this much: 24GiB, 512MiB")
    add("--start", type=int, metavar="N", dest="start_batch_size", help="first size tried after 1")
    add("--max", type=int, metavar="N", dest="max_batch_size", help="largest size to test")
    add("--time-budget", type=float, metavar="SECONDS", dest="time_budget_seconds")
    add("--soak-steps", type=int, metavar="N", help="steps that the largest size must train (20; on a CPU 5)")
    add("--reserve", type=float, metavar="SHARE", dest="reserve_fraction", help="memory to leave free (0.05)")
    add("--price-per-hour", type=float, metavar="USD", dest="price_per_hour_usd", help="an assumption (0.60)")
    add("--hours-per-run", type=float, metavar="HOURS", help="an assumption (2)")
    add("--runs-per-year", type=int, metavar="N", help="an assumption (100)")


def settings_given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings named on the command line; what is not given keeps RunSpec's default."""
    named = {name: getattr(options, name, None) for name in SETTINGS if name not in OF_CONFIG}
    return {name: value for name, value in named.items() if value is not None} | config_given(options)


def spec_of(given: dict[str, Any], document: str | None) -> RunSpec:
    """Return the spec that `--spec` holds as JSON, or the one of the single options where there is none."""
    if document is None:
        return RunSpec.from_dict(given)
    if given:
        raise SpecError("spec", f"replaces all settings; leave out {', '.join(given)}")
    try:
        return RunSpec.from_dict(json.loads(document))
    except (json.JSONDecodeError, RecursionError) as exc:
        raise SpecError("spec", f"is not valid JSON: {exc}") from exc
