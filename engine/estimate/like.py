"""The training of a request with a profile: the settings of a library stand under those that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SpecError
from ..settings.profiles import find, settings_like
from ..spec import SETTINGS, RunSpec

_OF_WORKLOAD = ("model", "config", "task", "config_parameters", "sequence_length", "image_size")


def given_like(profile: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are given, with those of the profile for the others.

    Raises SpecError: of `like` where the model does not take a setting that only the profile has.
    """
    find(profile)
    trained = RunSpec.from_dict({name: given[name] for name in _OF_WORKLOAD if name in given})
    taken = settings_like(profile, given, trained.workload, trained.input_size)
    settings = {**taken, **given}
    try:
        RunSpec.from_dict(settings)
    except SpecError as error:
        if error.field not in taken:
            raise
        reason = str(error).removeprefix(f"{error.field}: ")
        raise SpecError("like", f"{profile} has {error.field}, and {reason}") from error
    return settings


def describe_like(profile: str) -> str:
    """Write "hf-trainer: optimizer adamw-fused, ... (transformers 5.23.0, training_args.py)", then what differs."""
    known = find(profile)
    settings = ", ".join(SETTINGS[name].describe(value) for name, value in known.settings.items())
    chunks = f", loss in {known.loss_chunks} chunks" if known.loss_chunks else ""
    return f"{profile}: {settings}{chunks} ({known.origin}). {known.note}".strip()
