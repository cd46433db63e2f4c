"""The settings of a RunSpec as options of a command line: the same terms for measuring and for estimating."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..errors import SpecError
from ..setting import Role
from ..spec import DEFAULTS, SETTINGS, RunSpec


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add an option for what is trained, how, and with which batch size today. Left out: the spec's default."""
    for name, each in SETTINGS.items():
        if each.role not in (Role.TRAINING, Role.WORKLOAD, Role.TODAY) or name == "model":
            continue
        option = f"--{name.replace('_', '-')}"
        if DEFAULTS[name] is False:
            parser.add_argument(option, action="store_true", default=None, help=each.description)
        elif each.choices:
            parser.add_argument(option, help=" ".join(each.choices))
        else:
            parser.add_argument(option, type=int, metavar=each.metavar, help=each.description)


def settings_given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings named on the command line; what is not given keeps RunSpec's default."""
    named = {name: getattr(options, name, None) for name in SETTINGS}
    return {name: value for name, value in named.items() if value is not None}


def spec_of(given: dict[str, Any], document: str | None) -> RunSpec:
    """Return the spec that `--spec` holds as JSON, or the one of the single options where there is none."""
    if document is None:
        return RunSpec.from_dict(given)
    if given:
        raise SpecError("spec", f"stands for all settings; leave out {', '.join(given)}")
    try:
        return RunSpec.from_dict(json.loads(document))
    except (json.JSONDecodeError, RecursionError) as exc:
        raise SpecError("spec", f"is not valid JSON: {exc}") from exc
