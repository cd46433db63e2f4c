"""What the command line prints arrives whole, fits the terminal, and moves nothing in it."""

import ast
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.cli.printing.console import Console
from engine.cli.printing.terminal import say, table_lines, wrapped
from engine.cli.tune import training_lines
from engine.program import PROGRAM
from engine.report.address import Address
from engine.report.reporter import Reporter
from engine.text.printable import printable, printable_lines
from engine.trainings.script.result import Throughput, Training, TuneResult
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal, serving
from tests.factories import make_result

ROOT = Path(__file__).resolve().parents[3]
MEASURE = ("bert-tiny", "cpu", "--sequence-length", "8", "--memory-limit", "100MiB", "--no-estimate")


def start(*arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """In a session of its own, so that its children can be counted by their group.

    With the signal of Ctrl-C as a terminal leaves it: a shell's background jobs, CI among them, ignore it.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **pipes,
    )


def has_ended(group: int) -> bool:
    """Whether no process of the group is left; one that was killed gets a moment to go."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def end_of_a_command_whose_reader_leaves(*arguments: str) -> tuple[int, bytes, int]:
    with start("-m", "engine", *arguments) as engine:
        assert engine.stdout.readline()
        engine.stdout.close()
        return engine.wait(), engine.stderr.read(), engine.pid


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_a_result_is_printed_whole_where_its_heading_cannot_be_encoded(encoding):
    code = (
        "from engine.cli.printing.output import run_command; from tests.engine.cli.test_cli import result; "
        "from engine.cli.printing.result_text import summary; run_command(lambda: print(summary(result())) or 0)"
    )
    done = start("-c", code, PYTHONIOENCODING=encoding)
    out, errors = done.communicate()
    assert (done.returncode, errors) == (0, b"")
    assert b"? MemoryMark Results - BERT on CUDA" in out
    assert b"Savings: $0.48/run" in out


@pytest.mark.parametrize("arguments", [("gpus",), ("models",), ("models", "--json")])
def test_a_reader_who_leaves_before_the_end_ends_a_listing_quietly(arguments):
    with start("-m", "engine", *arguments) as engine:
        engine.stdout.close()
        assert (engine.wait(), engine.stderr.read()) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--events",)])
def test_a_reader_who_leaves_ends_a_run_with_141_no_traceback_and_no_child(form):
    status, errors, group = end_of_a_command_whose_reader_leaves(*MEASURE, *form)
    assert (status, errors) == (141, b"")
    assert has_ended(group)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_what_is_known_in_a_line_and_leaves_no_child(number):
    engine = start("-m", "engine", *MEASURE)
    while b"batch 1 " not in engine.stdout.readline():
        assert engine.poll() is None
    os.killpg(engine.pid, number)
    _, errors = engine.communicate()
    assert engine.returncode == 128 + number
    assert errors.startswith(b"Stopped. 1 trained")
    assert errors.endswith(b" No result is stored.\n")
    assert errors.count(b"\n") == 1
    assert has_ended(engine.pid)


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


CLI = Path(__file__).parents[3] / "engine" / "cli"
EVIL = "\x1b]0;owned\x07\x1b[31mred\r\nreported: https://evil.example/\u202e"
BARE = ("print", "sys.stdout.write", "sys.stdout.writelines", "sys.stderr.write")
TUNED = Path(__file__).parents[2] / "factories" / "tuned_function.json"


def is_harmless(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


def test_all_that_the_command_line_prints_goes_through_one_function() -> None:
    """`terminal` writes; `output` writes JSON, whose encoder escapes, and words of its own."""
    for path in sorted(CLI.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and path.name not in ("terminal.py", "output.py"):
                called = ast.unparse(node.func)
                assert called not in BARE, f"{path.name}:{node.lineno}"


def test_lines_stay_lines_and_their_indentation_stays() -> None:
    stream = io.StringIO()
    say(f"  batch 16\n\tfits {EVIL}", stream)
    assert stream.getvalue().startswith("  batch 16\n\tfits  ]0;owned  [31mred")
    assert printable(EVIL) == "]0;owned  [31mred  reported: https://evil.example/"
    assert printable_lines("a\n b") == "a\n b"


class HostilePortal(LoopbackPortal):
    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        status, content = super().answer(path, body)
        if "known" in content:
            content["known"] = {digest: {**place, "url": EVIL} for digest, place in content["known"].items()}
        return status, {**content, "url": EVIL} if "url" in content else content


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    document = json.loads(TUNED.read_text())
    document["result"]["environment"]["run_key"] = key = "a1" * 16
    (tmp_path / f"{key}.json").write_text(json.dumps(document))
    (tmp_path / "\x1b[31mfile\nof\x07nobody").touch()
    return tmp_path


@pytest.mark.parametrize("times", [1, 2])
def test_sync_prints_nothing_that_a_portal_or_a_file_name_made_up(
    folder: Path, times: int, monkeypatch, capsys
) -> None:
    with serving(HostilePortal()) as portal:
        for _ in range(times):
            monkeypatch.setenv("MEMORYMARK_TOKEN", TOKEN)
            assert main(["sync", str(folder), "--report-to", portal.url]) == 0
    printed = capsys.readouterr()
    assert is_harmless(printed.out + printed.err)
    assert len(printed.out.splitlines()) == 2 * times


def test_the_end_of_a_reported_run_prints_nothing_that_its_portal_made_up(tmp_path: Path, capsys) -> None:
    announcement = {"run_key": "b2" * 16, "kind": "measurement", "host": "n", "spec": {}, "engine_version": "1"}
    with (
        serving(HostilePortal()) as portal,
        Reporter(Address(portal.url, TOKEN), tmp_path, announcement, sync_command="sync") as reporter,
    ):
        reporter.emit({"event": "phase", "seconds": 0.0, "phase": "searching"})
    printed = capsys.readouterr().err
    assert printed.startswith("reported: ")
    assert is_harmless(printed)
    assert len(printed.splitlines()) == 1


def test_events_with_names_of_elsewhere_are_shown_as_lines() -> None:
    stream = io.StringIO()
    console = Console(stream)
    device = {"device": "cuda:0", "name": EVIL, "limit_bytes": None}
    console({"event": "device", "seconds": 1.0, "device": device})
    console({"event": "log", "seconds": 1.0, "message": EVIL})
    assert is_harmless(stream.getvalue())
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize("form", [(), ("--markdown", "-")])
def test_names_in_a_document_reach_no_terminal_and_no_summary_as_markup(
    form, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    document = json.loads(TUNED.read_text())
    name = f"{EVIL}[x](http://evil.example/)`*b*`<img>|"
    document["result"]["device"]["name"] = document["result"]["spec"]["model"] = name
    path = tmp_path / "result.json"
    path.write_text(json.dumps(document))
    main(["check", str(path), "--min-batch", "1", *form])
    printed = capsys.readouterr().out
    assert "evil.example" in printed
    assert is_harmless(printed)
    if form:
        assert not any(each in printed for each in ("[x](", "http://evil", "`*b*`", "<img>"))
    assert main(["advise", str(path)]) in (0, 2)
    printed = capsys.readouterr()
    assert is_harmless(printed.out + printed.err)


def test_a_portals_answer_to_check_is_shown_as_a_line(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MEMORYMARK_TOKEN", TOKEN)
    with serving(LoopbackPortal(fault=lambda _path, _number: (403, {"detail": EVIL}))) as portal:
        assert main(["sync", str(TUNED), "--report-to", portal.url]) == 8
        assert main(["check", str(TUNED), "--baseline", f"{portal.url}/"]) == 2
    printed = capsys.readouterr()
    assert is_harmless(printed.out + printed.err)


def lines(*throughputs: Throughput) -> str:
    consumed = Training(1, 1, (9,), None, None, (), (), throughputs=throughputs)
    return "\n".join(training_lines(TuneResult(make_result(), consumed)))


def test_steady_starts_show_their_throughput() -> None:
    text = lines(Throughput(16, 64.6, is_steady=True))
    assert "Throughput of each size" in text
    assert "64.6 samples/s" in text


def test_a_start_whose_steps_were_not_steady_shows_none() -> None:
    """Two of them were divided by a reader, and gave 61x where the truth was 4.5x."""
    assert lines(Throughput(16, 64.6, is_steady=False), Throughput(794, 249.7)) == ""
