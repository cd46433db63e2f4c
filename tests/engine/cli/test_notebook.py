"""The commands run in a notebook's cell, by a magic."""

import pytest

from engine.cli.notebook import run_line


def test_a_line_is_a_command_and_its_output_is_printed(capsys) -> None:
    run_line("fit bert --gpu a10")
    printed = capsys.readouterr().out
    assert "First choice by estimate: NVIDIA A10" in printed
    run_line("fit 'be rt'")
    assert "error: model: 'be rt' is not offered" in capsys.readouterr().out


def test_ipython_knows_the_magic_and_puts_no_variable_into_it(capsys) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    shell.run_cell("%load_ext engine.public")
    shell.run_cell("batch_size = 8\n%memorymark tune --max 4 -- nothing {batch_size}")
    assert "'nothing' is no program that can be found" in capsys.readouterr().out
