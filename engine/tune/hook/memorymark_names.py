"""Finds by which names a script holds its modules and configs, as a line to paste may write them."""

from __future__ import annotations

from itertools import dropwhile
from typing import Any

import memorymark_read as read

LONGEST_NAME = 60
WRAPPERS = ("module", "_orig_mod")  # the names by which DDP and torch.compile hold what they wrap


def identifier(name: str) -> str:
    """Return a name that a line to paste may hold and a portal takes; empty for any other name."""
    return name if name.isascii() and name.isidentifier() and len(name) <= LONGEST_NAME else ""


def names_held(torch: Any, met: list[Any]) -> list[str]:
    """Return each module's name within another module, as the script wrote it; empty for a module without one."""
    modules = read.objects_of(torch.nn.Module)
    parts = [part for each in modules for part in vars(each).get("_modules", {}).items()]
    names = {id(part): name for name, part in parts if part is not None}
    return [identifier(names.get(id(reference()), "")) for reference in met]


def configs_with_cache(module: Any) -> list[tuple[str, Any]]:
    """Return each config that asks for a decoder's cache, with its module's path; empty if no line can name it."""
    found: dict[int, tuple[str, Any]] = {}
    for path, part in module.named_modules():
        config = getattr(part, "config", None)
        if getattr(config, "use_cache", False) is True and id(config) not in found:
            names = list(dropwhile(lambda name: name in WRAPPERS, filter(None, path.split("."))))
            found[id(config)] = ".".join(names) if all(map(identifier, names)) else "", config
    return list(found.values())
