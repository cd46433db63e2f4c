"""The config file that holds the batch size of a command: read, and copied with another size; never changed itself."""

from __future__ import annotations

from pathlib import Path

from ...errors import SpecError
from ..config_copy import number_in, with_number
from ..spec import FunctionSpec, TuneSpec


def number_in_config(spec: TuneSpec) -> int | None:
    """Return the batch size that the config file holds; None where it gets in another way. Raises SpecError."""
    if spec.config is None:
        return None
    file, key = spec.config
    try:
        return number_in(_read(spec, file), Path(file).suffix, key)
    except ValueError as exc:
        raise SpecError("batch_in", f"{file}: {exc}") from exc


def write_copy(spec: TuneSpec | FunctionSpec, batch_size: int, out: Path) -> None:
    """Write the config file with the batch size of a start into its folder, if the command has one."""
    if not isinstance(spec, TuneSpec) or spec.config is None:
        return
    file, key = spec.config
    try:
        text = with_number(_read(spec, file), Path(file).suffix, key, batch_size)
    except ValueError as exc:
        raise SpecError("batch_in", f"{file}: {exc}") from exc
    (out / Path(file).name).write_bytes(text.encode())


def _read(spec: TuneSpec, file: str) -> str:
    """Read the file with its line ends as they are."""
    try:
        return (Path(spec.directory or ".") / file).read_bytes().decode()
    except OSError as exc:
        raise SpecError("batch_in", f"{file}: cannot be read: {exc.strerror}") from exc
