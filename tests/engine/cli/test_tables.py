"""Tables fit the width of a terminal; in a pipe each row is one line in which nothing is cut."""

import re

import pytest

from engine.cli.main import main
from engine.cli.printing.terminal import table_lines, wrapped
from engine.program import PROGRAM

ROWS = [("NVIDIA A10", "22.1 GiB"), ("a [bold]name[/] of :smile: many words, longer than there is room", "9.8 GiB")]


def test_a_row_is_one_line_where_there_is_no_width() -> None:
    assert table_lines(("GPU", "memory"), ROWS, right=(1,)) == [
        "GPU                                                                 memory",
        "NVIDIA A10                                                        22.1 GiB",
        "a [bold]name[/] of :smile: many words, longer than there is room   9.8 GiB",
    ]


@pytest.mark.parametrize("width", [30, 60])
def test_a_terminal_gets_all_of_a_value_in_several_lines(width: int) -> None:
    lines = table_lines(("GPU", "memory"), ROWS, width, right=(1,))
    assert max(map(len, lines)) <= width
    assert {word for name, _ in ROWS for word in name.split()} <= set(" ".join(lines).split())
    assert "22.1 GiB" in lines[1]


def test_a_figure_is_never_cut_even_where_a_table_is_too_wide() -> None:
    lines = table_lines(("GPU", "largest", "memory"), [("NVIDIA A10", "65536+", "22.1 GiB")], 12, right=(1, 2))
    assert "65536+  22.1 GiB" in lines[1]


def test_long_lines_break_between_words_and_commands_stay_whole() -> None:
    command = f"What to change: {PROGRAM} estimate bert-tiny --gpu cpu --batch-size 16"
    assert wrapped(["  one two three", command], 12) == ["  one two", "    three", command]
    assert wrapped(["one two three"], None) == ["one two three"]


@pytest.mark.parametrize("listing", ["models", "gpus"])
def test_a_listing_is_a_table_whose_rows_begin_with_an_id(listing: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([listing]) == 0
    heading, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert heading.startswith("id ")
    assert len(rows) > 25
    assert all(re.match(r"[\w.-]+ {2,}", row) for row in rows)


def test_the_parameters_of_a_model_are_written_in_millions(capsys: pytest.CaptureFixture[str]) -> None:
    main(["models"])
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("bert "))
    assert row.split()[:3] == ["bert", "109.5", "M"]
