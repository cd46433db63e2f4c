"""A model's name in a file -> a model of the catalogue, or the config.json that lies on this machine."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from ..settings.catalog import WORKLOADS
from ..settings.catalog.from_config import CONFIG, SIZE_BYTES_MAX
from .entries import Entry, refused

_SAME_SHAPE = re.compile(r"^meta-|-(?:instruct|it|chat|base|hf|bnb|4bit|unsloth|2507)(?=-|$)")
"""Parts of a name that change weights and not their shapes."""
LANGUAGE_MODEL = "text-generation"


def settings_of_model(entry: Entry, folder: Path) -> dict[str, Any]:
    """Return the model's settings. Raises SpecError where neither the catalogue nor this machine has its shape."""
    name = str(entry.value)
    found = _catalogue().get(_shape_of(name))
    if found is not None:
        return {"model": found}
    for path in (folder / name / "config.json", Path(name).expanduser() / "config.json", *_of_hub_cache(name)):
        if path.is_file() and path.stat().st_size <= SIZE_BYTES_MAX:
            return {"model": CONFIG, "config": path.read_text(encoding="utf-8"), "task": LANGUAGE_MODEL}
    near = "neither the catalogue (`list models`), nor a folder with its config.json, nor the hub's cache here has it"
    raise refused(entry.line, entry.key, f"{name[:80]}: {near}; give its config.json with --config")


@cache
def _catalogue() -> dict[str, str]:
    names = {each.huggingface_id or name: name for name, each in WORKLOADS.items() if each.task == LANGUAGE_MODEL}
    return {_shape_of(name): found for name, found in names.items()} | {
        _shape_of(each): each for each in names.values()
    }


def _shape_of(name: str) -> str:
    """Return the part of a name that tells the shapes: "llama321b" of meta-llama/Llama-3.2-1B-Instruct.

    >>> _shape_of("unsloth/Qwen2.5-7B-Instruct-bnb-4bit"), _shape_of("qwen2_5_7b")
    ('qwen257b', 'qwen257b')
    """
    return re.sub(r"[^a-z0-9]", "", _SAME_SHAPE.sub("", name.rstrip("/").rpartition("/")[2].lower()))


def _of_hub_cache(name: str) -> list[Path]:
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    hub = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return []
    return sorted((hub / f"models--{name.replace('/', '--')}" / "snapshots").glob("*/config.json"))
