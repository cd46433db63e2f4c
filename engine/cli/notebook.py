"""The commands in a cell of a notebook: `%load_ext memorymark`, then `%memorymark fit bert --gpu a10`."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import Any

from .printing.terminal import say


def load_ipython_extension(shell: Any) -> None:
    """Add the magic; IPython calls this for `%load_ext`."""
    from IPython.core.magic import no_var_expand  # type: ignore[import-not-found]  # IPython is the user's

    # `{batch_size}` is the command's: no variable of the notebook goes there
    shell.register_magic_function(no_var_expand(run_line), magic_name="memorymark")


def run_line(line: str) -> None:
    """Run a command in a process of its own, which may hide cards and tokens, and print what it says."""
    command = [sys.executable, "-m", __package__.rpartition(".")[0], *shlex.split(line)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            for said in process.stdout:
                say(said, end="")
        except KeyboardInterrupt:  # the command is interrupted, too, and says what is certified by then
            say(process.stdout.read(), end="")
