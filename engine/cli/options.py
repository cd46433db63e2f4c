"""The settings of a RunSpec as options of a command line: the same terms for measuring and for estimating."""

from __future__ import annotations

import argparse

from ..setting import Role
from ..spec import DEFAULTS, SETTINGS


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
