"""The living line: the last line of a terminal, redrawn by rich while a command works, and gone at its end.

    ⠹ Search: batch 22, step 2 of 3                  ━━━━━━╺━━━━━  about 3 min left

It appears before the modules of the command are loaded, and there is one at a time: `first_line` begins it, and what
follows the events of a run takes it over. Where the output is no terminal, or one that cannot redraw, there is none.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from ...text.printable import printable
from ...text.time_left import OF_BUDGET, describe_left, describe_most_left
from .terminal import rich_console, wrapped, write_above, write_styled

if TYPE_CHECKING:
    from rich.console import RenderableType

REDRAWN_A_SECOND = 4.0
WIDEST, BAR_WIDTH = 100, 12
ACCENT = "#00ff88"
"""The green of the pages: rich's own bar is red, which means a failure here."""
TIME_WIDTH = len("about 1 min 45 s left")
LISTINGS = frozenset({"advise", "calibrate", "check", "devices", "gpus", "list", "models", "sync"})
"""Commands that answer at once, or print a line for each thing they did."""
_OF_TOOLS = frozenset({"--events", "--help", "--help-all", "--version", "-h"})
_ON_STANDARD_ERROR = frozenset({"estimate", "fit", "validate"})


@dataclass(frozen=True, slots=True)
class Doing:
    """What a command does, since when, and the seconds left (None: unknown), at most if `is_most`: by its budget."""

    phase: str
    what: str
    seconds: float
    left: float | None
    is_most: bool = False

    @property
    def text(self) -> str:
        """The phase, and what it does: "Search: batch 22, step 2 of 3"."""
        return f"{self.phase}{self.what and ': '}{self.what}"


class LivingLine:
    def __init__(self, stream: TextIO, doing: Callable[[], Doing]) -> None:
        from rich.live import Live
        from rich.spinner import Spinner

        self.doing = doing
        self.stream = stream
        self._console = rich_console(stream)
        self._spinner = Spinner("line" if self._console.options.ascii_only else "dots", style=ACCENT)
        self._live = Live(
            get_renderable=self._drawn,
            console=self._console,
            transient=True,
            refresh_per_second=REDRAWN_A_SECOND,
            redirect_stdout=False,
            redirect_stderr=sys.stderr.isatty(),  # what others write there comes above the line
        )
        self._live.start(refresh=True)
        write_above(self._console)

    def write(self, text: str, style: str = "") -> None:
        write_styled(self._console, "\n".join(wrapped([text], self._console.width)), style)

    def refresh(self) -> None:
        self._live.refresh()

    def end(self) -> None:
        """Remove it; what is written from now on stays at the end."""
        global _current
        write_above(None)
        self._live.stop()
        if _current is self:
            _current = None

    def _drawn(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now, width = self.doing(), min(self._console.width - 1, WIDEST)
        text, said = printable(now.text), describe_time(now)
        time_width = max(TIME_WIDTH, len(said))
        room_for_bar = width - len(text) - time_width - 4  # the spinner, and a space between two of four parts
        line = Table.grid(padding=(0, 1), expand=False)
        line.width = width
        line.add_column(width=1)
        line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        cells: list[RenderableType] = [self._spinner, Text(text)]
        if room_for_bar >= BAR_WIDTH:
            whole = None if now.left is None else now.seconds + now.left
            line.add_column(width=BAR_WIDTH)
            bar = ProgressBar(total=whole or None, completed=now.seconds, width=BAR_WIDTH)
            bar.complete_style = bar.finished_style = bar.pulse_style = ACCENT
            cells.append(bar)
        line.add_column(width=time_width, no_wrap=True)
        line.add_row(*cells, Text(said))
        return line


_current: LivingLine | None = None


def living_line(stream: TextIO, doing: Callable[[], Doing]) -> LivingLine | None:
    """Begin the living line of a terminal, or take over the one that is there; None where nothing can be redrawn."""
    global _current
    if _current is not None and _current.stream is not stream:
        _current.end()
    if _current is not None:
        _current.doing = doing
    elif stream.isatty() and rich_console(stream).is_interactive:
        _current = LivingLine(stream, doing)
    return _current


@contextmanager
def first_line(arguments: Sequence[str]) -> Iterator[None]:
    """Show a living line while the modules of a command are loaded, if the command has one. It is gone at the end."""
    begun = time.monotonic()
    stream = stream_of(arguments)
    if stream is not None:
        living_line(stream, lambda: Doing("Starting", "", time.monotonic() - begun, None))
    try:
        yield
    finally:
        if _current is not None:
            _current.end()


def stream_of(arguments: Sequence[str]) -> TextIO | None:
    """Return where a command shows its progress, before its arguments are parsed; None if it shows no progress."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if not own or own[0] in LISTINGS or _OF_TOOLS.intersection(own):
        return None
    is_on_error = own[0] in _ON_STANDARD_ERROR or "--json" in own or "--validate" in own
    return sys.stderr if is_on_error else sys.stdout


def describe_doing(now: Doing) -> str:
    """Write "Search: start 3 of about 6 with 512, 25 s each; about 3 min left"."""
    return "; ".join(part for part in (printable(now.text), describe_time(now)) if part)


def describe_time(now: Doing) -> str:
    """Write about how long the command still takes, or, where unknown, how long it has taken so far."""
    if now.left is None:
        return f"{now.seconds:.0f} s so far" if now.seconds >= 1 else ""
    if not now.left:
        return "longer than expected"
    return f"{describe_most_left(now.left)} {OF_BUDGET}" if now.is_most else describe_left(now.left)


def _give_back_standard_error() -> None:
    """In a fork there is no thread that draws, and its lock may be held for ever: write past it."""
    sys.stderr = getattr(sys.stderr, "rich_proxied_file", sys.stderr)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_back_standard_error)
