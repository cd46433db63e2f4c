"""Nothing that came from elsewhere moves the cursor, colours the terminal, sets its title, or adds a line."""

import ast
import io
import json
from pathlib import Path
from typing import Any

import pytest

from engine.cli.main import main
from engine.cli.printing.console import Console
from engine.cli.printing.terminal import say
from engine.report.address import Address
from engine.report.reporter import Reporter
from engine.text.printable import printable, printable_lines
from tests.engine.report.loopback_portal import TOKEN, LoopbackPortal, serving

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
