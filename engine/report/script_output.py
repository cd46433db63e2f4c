"""PURE: removes what a script printed or said from everything that leaves it, unless sending it was requested.

An error may quote the last lines of a script, or the message of an exception that it raised, each after a marker. They
may contain anything: paths, data, logs.
"""

from __future__ import annotations

from typing import Any

from ..text.own_words import IN_ITS_WORDS, SAID

MARK = "; its last lines: "
"""The marker between an error and the lines; all text after it comes from the script, but for the place of its log."""
STAYED = "its output stayed on "
"""What stands before the host in place of what a script printed."""
OTHER_TORCHVISION = "; its torchvision was built for another torch: install both from the same package index"
NO_INPUT = "; a start has no terminal and an empty standard input: give the script what it asks for by its options"
NO_TRACKER = "; experiment trackers are off in a start: WANDB_MODE=online keeps Weights & Biases on"
NO_MOVE = "; the layers over files do not allow this to your account: set MEMORYMARK_PROTECTION=saving"
_OWN_BEHIND = (NO_MOVE, OTHER_TORCHVISION, NO_INPUT, NO_TRACKER)
"""What MemoryMark adds behind a message."""
_LOG, _BY_HAND = "\n  Its whole output: ", "\n  To run it by hand: "


def quotes_script(content: bytes) -> bool:
    return any(mark.encode() in content for mark in (MARK, SAID))


def without_output(content: Any, host: str, *, names_place: bool = False) -> Any:
    """Replace each quote of a script by the host that has the output; `names_place` adds its log and the command."""
    if isinstance(content, str):
        return _cut(content, host, names_place)
    if isinstance(content, dict):
        return {name: without_output(part, host, names_place=names_place) for name, part in content.items()}
    if isinstance(content, list | tuple):
        return [without_output(part, host, names_place=names_place) for part in content]
    return content


def _cut(text: str, host: str, names_place: bool) -> str:
    own, mark, quoted = min((text.partition(mark) for mark in (MARK, SAID)), key=lambda parts: len(parts[0]))
    if not mark:
        return text
    behind = "".join(each for each in _OWN_BEHIND if mark == SAID and each in quoted)
    place = _place(quoted) if names_place else ""
    if own.endswith(IN_ITS_WORDS):
        own = f"{own.removesuffix(IN_ITS_WORDS)}: "
    return f"{own}{'; ' if mark == MARK else ''}{STAYED}{host}{behind}{place}"


def _place(quoted: str) -> str:
    """Return the log and the command at the end of an error; the script's own lines before them are indented deeper."""
    before, sign, command = quoted.rpartition(_BY_HAND)
    _, sign_of_log, log = before.rpartition(_LOG)
    is_log = sign_of_log and "\n" not in log
    return f"{f'{_LOG}{log}' if is_log else ''}{sign}{command}" if sign else ""
