"""PURE: a change of settings as lines of the file that has them, and the file with these lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..estimate.what_to_change import Variant
from .entries import FIELD, entries_of, is_command
from .tools import TORCHTUNE, Meaning
from .training_file import OPTIMIZERS, TrainingFile

M = Meaning
_KEYS = {
    "gradient_checkpointing": M.CHECKPOINTING,
    "optimizer": M.OPTIMIZER,
    "sequence_length": M.LENGTH,
    "lora_dropout": M.LORA_DROPOUT,
    "offload_activations": M.OFFLOAD_ACTIVATIONS,
}


def changeable(file: TrainingFile) -> frozenset[str]:
    """Return the settings that a line of this file can change, and that are worth it: adapters have little state."""
    known = {*file.tool.keys.values()}
    names = {name for name, meaning in _KEYS.items() if meaning in known}
    return frozenset(names - ({"optimizer"} if file.spec.lora_rank else set()))


def lines_of(file: TrainingFile, variant: Variant) -> dict[str, Any] | None:
    """Return the keys to set for these settings; None where the tool has no key for one of them."""
    meanings: dict[Meaning, Any] = {}
    for name, value in variant.settings.items():
        if name not in _KEYS:
            return None
        meanings[_KEYS[name]] = _optimizer(file, value) if name == "optimizer" else value
    if variant.micro_batch_size is not None:
        pieces = variant.batch_size // variant.micro_batch_size
        meanings |= {M.BATCH_SIZE: variant.micro_batch_size, M.ACCUMULATION: file.spec.accumulation_steps * pieces}
    off = [key for key, each in file.tool.keys.items() if each is M.NO_CHECKPOINTING]
    if off and M.CHECKPOINTING in meanings:
        del meanings[M.CHECKPOINTING]
        meanings[M.NO_CHECKPOINTING] = False
    keys = {meaning: file.line_of(meaning) for meaning in meanings}
    if not {*meanings} <= {*file.tool.keys.values()}:
        return None
    return {entry.key if (entry := keys[each]) else file.tool.key_of(each): value for each, value in meanings.items()}


def _optimizer(file: TrainingFile, name: str) -> str:
    has_path = file.tool is TORCHTUNE
    return next(each for each, found in OPTIMIZERS.items() if found == name and ("." in each) is has_path)


def changed_text(file: TrainingFile, lines: Mapping[str, Any]) -> str:
    """Return the file's text with these keys set, all else as it is. Raises SpecError where a line cannot be."""
    text = file.text
    for key, value in lines.items():
        text = _with(file, text, key, value)
    read = {each.key: each.value for each in entries_of(text, file.path.name)}
    wrong = [key for key, value in lines.items() if read.get(key) != value]
    if wrong:
        raise SpecError(FIELD, f"{', '.join(wrong)} cannot be changed by a line of its own: change it by hand")
    return text


def _with(file: TrainingFile, text: str, key: str, value: Any) -> str:
    """Return the text with one key set: in its line, or in a new line behind the batch size."""
    lines = {each.key: each.line for each in entries_of(text, file.path.name)}
    rows, name = text.split("\n"), re.escape(key.rpartition(".")[2])
    anchor = file.line_of(M.BATCH_SIZE) or file.read[0]
    row = lines.get(key, lines[anchor.key]) - 1
    shown = value if isinstance(value, str) else json.dumps(value)
    if is_command(text, file.path.name):
        if key in lines:
            rows[row] = re.sub(rf"(--{_either(name)}(?:=|\s+))(?:\$\(.*?\)+|\S+)", rf"\g<1>{shown}", rows[row])
        else:
            rows[row] = re.sub(rf"(--{_either(anchor.key)}\b)", rf"--{key} {shown} \g<1>", rows[row])
    elif text.lstrip().startswith("{"):
        if key in lines:
            old = rf'("{name}"\s*:\s*)("[^"]*"|[^,\s}}]+)'
            rows[row] = re.sub(old, rf"\g<1>{json.dumps(value)}", rows[row])
        else:
            rows[row] = re.sub(rf'("{anchor.key}")', rf"{json.dumps(key)}: {json.dumps(value)}, \g<1>", rows[row])
    elif key in lines:
        old = rf"^(\s*['\"]?{name}['\"]?\s*:)[^#]*?(\s+#.*)?$"
        rows[row] = re.sub(old, rf"\g<1> {shown}\g<2>", rows[row])
    else:
        rows.insert(row + 1, f"{key}: {shown}")
    return "\n".join(rows)


def _either(option: str) -> str:
    """Match an option that is written with hyphens or with underscores."""
    return option.replace("_", "[-_]")


def write(path: Path, text: str) -> None:
    """Write a new file. Raises SpecError where there is one, or none can be."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as exc:
        raise SpecError("write", f"{path} is there already: name a new file") from exc
    except OSError as exc:
        raise SpecError("write", f"{path} cannot be written: {exc.strerror}") from exc
