"""Prints all text for people, so that no untrusted text controls the terminal. rich decides what a terminal can show.

Names in documents, answers of portals, output of scripts and file names may hold control characters. Untrusted text
within a line is passed through `printable` where the line is made, so that it cannot add lines.

A pipe or a file gets the lines as they are: no style, no wrapping. rich is loaded only for a terminal and for tables.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from ...program import PROGRAM
from ...text.printable import printable_lines

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

BOLD = "bold"
LEAST_SECONDS = 0.05  # rounded to a tenth, less would be printed as zero
_drawing: RichConsole | None = None


def say(text: str, stream: TextIO | None = None, *, end: str = "\n", style: str = "") -> None:
    stream = sys.stdout if stream is None else stream
    shown = printable_lines(text)
    if stream.isatty() and (style or _drawing is not None):
        write_styled(_drawing or rich_console(stream), shown, style)
    else:
        stream.write(f"{shown}{end}")
        stream.flush()


def write_above(console: RichConsole | None) -> None:
    """Have all lines of this process written above what this console draws; None: it draws no more."""
    global _drawing
    _drawing = console


def write_styled(console: RichConsole, text: str, style: str = "") -> None:
    """Write lines to a terminal by rich, above a living line if there is one. The terminal itself wraps long ones."""
    from rich.text import Text

    console.print(Text(text, style=style), soft_wrap=True)


def say_lines(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def say_error(error: object) -> None:
    lines = f"error: {error}".splitlines()
    say("\n".join(wrapped(lines, width_of(sys.stderr))), sys.stderr)


def rich_console(stream: TextIO) -> RichConsole:
    """Return rich's console for a stream. It follows NO_COLOR, COLUMNS and TERM; in a CI job nothing is redrawn."""
    from rich.console import Console

    is_in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return Console(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        force_jupyter=False,
        force_interactive=False if is_in_ci else None,
    )


def width_of(stream: TextIO) -> int | None:
    """Return the width of a terminal; None for a pipe or a file, which is as wide as its longest line."""
    return rich_console(stream).width if stream.isatty() else None


def wrapped(lines: Iterable[str], width: int | None, hanging: str = "  ") -> list[str]:
    """Break long lines between words. A line with a command to copy stays whole; one in backticks is only named."""
    if width is None:
        return list(lines)
    shown = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        is_whole = len(line) <= width or (PROGRAM in line and f"`{PROGRAM}" not in line)
        broken = textwrap.wrap(
            line, width, subsequent_indent=f"{indent}{hanging}", break_long_words=False, break_on_hyphens=False
        )
        shown += [line] if is_whole else broken
    return shown


def table_lines(
    headings: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None, *, right: Iterable[int] = ()
) -> list[str]:
    """Return the lines of a table without borders; `right` are the columns of figures, numbered from 0.

    Without a width each row is one line to grep; with one, long text goes on in the next line. Nothing is ever cut.
    """
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    figures, cells = set(right), list(rows)
    for place, heading in enumerate(headings):
        if place in figures:
            widest = max(len(row[place]) for row in [headings, *cells])
            table.add_column(heading, justify="right", no_wrap=True, min_width=widest)
        else:
            table.add_column(heading, overflow="fold")
    for row in cells:
        table.add_row(*row)
    console = Console(width=width or _WIDER_THAN_ANY, color_system=None, markup=False, emoji=False, force_jupyter=False)
    needed = Measurement.get(console, console.options.update_width(_WIDER_THAN_ANY), table).minimum
    lines = console.render_lines(table, console.options.update_width(max(console.width, needed)), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


_WIDER_THAN_ANY = 10_000
