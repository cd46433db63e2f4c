"""While a command works, a terminal shows one line that changes and one for each finished phase; a file gets lines."""

import io
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine.cli.printing import living_line
from engine.cli.printing.console import Console, phase_line
from engine.cli.printing.living_line import Doing, describe_time, first_line, stream_of
from engine.cli.printing.stopped import known_so_far
from engine.cli.printing.terminal import say_error
from engine.describe.time_left import so_far
from engine.describe.time_left.phase_facts import what_is_tried
from engine.describe.time_left.starts import StartUnderWay
from engine.facts.result import Outcome, Probe, Purpose
from engine.program import PROGRAM

ROOT = Path(__file__).resolve().parents[3]
COLOUR, CONTROL = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal(io.StringIO):
    """Collects what is written; says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    return Terminal()


def event(name: str, seconds: float, **content: Any) -> dict[str, Any]:
    return {"event": name, "seconds": seconds, **content}


def probe(size: int, seconds: float, *, fits: bool = True, purpose: Purpose = Purpose.SEARCH) -> dict[str, Any]:
    outcome = Outcome.FITS if fits else Outcome.OUT_OF_MEMORY
    return event("probe", seconds, probe=Probe(size, outcome, purpose=purpose, steps=3, wall_seconds=3.0).to_dict())


RUN = (
    event("started", 0.0, spec={"model": "bert-tiny"}),
    event("phase", 0.0, phase="searching"),
    event("probe_started", 0.0, batch_size=22, purpose="search"),
    event("progress", 2.0, batch_size=22, purpose="search", stage="memory", step=2),
    probe(22, 4.0),
    probe(23, 5.0, fits=False),
    event("phase", 5.0, phase="timing"),
    event("timing", 9.0, round=4, rounds_expected=8, seconds_left=62.0),
)


def drawn(terminal: Terminal) -> list[str]:
    """Return what was written, without what moves the cursor, as lines."""
    return CONTROL.sub("\n", COLOUR.sub("", terminal.getvalue())).splitlines()


def test_a_terminal_shows_what_is_tried_and_how_long_it_takes_and_nothing_of_it_stays(terminal: Terminal) -> None:
    with Console(terminal) as console:
        for each in RUN:
            console(each)
            living_line._current.refresh()  # type: ignore[union-attr]
    shown = "\n".join(drawn(terminal))
    assert "Search: batch 22, step 2 of 3" in shown
    assert re.search(r"Speeds: round 4 of about 8 .*about 1 min left", shown)
    assert terminal.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K"), "the cursor is shown again, the line is gone"


def test_a_finished_phase_leaves_one_line_and_a_probe_none(terminal: Terminal) -> None:
    with Console(terminal) as console:
        for each in RUN:
            console(each)
    lines = [line for line in drawn(terminal) if line.startswith("✓")]
    assert lines == ["✓ Search          22 fits, 23 does not  (5.0 s)"]
    assert "batch 22 fits" not in terminal.getvalue()


def test_a_file_gets_a_line_for_each_phase_and_probe_and_nothing_that_controls(terminal: Terminal) -> None:
    file = io.StringIO()
    with Console(file) as console:
        console(event("stage", 0.0, stage="importing torch and transformers"))
        for each in RUN:
            console(each)
    lines = file.getvalue().splitlines()
    assert lines[0] == "    0.0s  importing torch and transformers ..."
    assert [re.split(" fits|: ", line.split("s  ")[1])[0] for line in lines[1:]] == [
        "searching for the largest batch size", "batch 22", "batch 23", "comparing speeds",
    ]  # fmt: skip
    assert "\x1b" not in file.getvalue()


def starts_of_a_command() -> list[dict[str, Any]]:
    ended = [event for n, size in enumerate((16, 512)) for event in started(size, 25.0 * n, 25.0)]
    alive = [
        event("progress", float(at), batch_size=900, purpose="search", stage="memory", step=0)
        for at in range(55, 231, 5)
    ]
    begun = event("probe_started", 50.0, batch_size=900, purpose="search")
    return [
        event("started", 0.0, spec={"command": ["python"], "compare_speed": False}),
        event("phase", 0.0, phase="searching"),
        *ended,
        begun,
        *alive,
    ]


def started(size: int, at: float, seconds: float) -> list[dict[str, Any]]:
    found = Probe(size, Outcome.FITS, purpose=Purpose.SEARCH, steps=5, wall_seconds=seconds)
    return [
        event("probe_started", at, batch_size=size, purpose="search"),
        event("probe", at + seconds, probe=found.to_dict()),
    ]


def test_a_file_says_the_time_left_ever_less_often() -> None:
    with Console(file := io.StringIO()) as console:
        for each in starts_of_a_command():
            console(each)
    lines = [line for line in file.getvalue().splitlines() if "Search:" in line]
    assert [line.split()[0] for line in lines] == ["25.0s", "50.0s", "70.0s", "90.0s", "115.0s", "145.0s", "185.0s"]
    assert lines[2].endswith("Search: start 3 of about 5 with 900, 25 s each; about 55 s left")


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("CI", "true")])
def test_where_nothing_can_be_redrawn_there_are_lines(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with Console(terminal) as console:
        for each in RUN:
            console(each)
    assert "    4.0s  batch 22 fits" in terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()


def test_nothing_is_said_of_the_time_left_once_the_run_has_ended(terminal: Terminal) -> None:
    """The last line of a terminal was "154.6s  Starting; about 5 s left": a run was over, and none had begun."""
    with Console(terminal) as console:
        for each in (*RUN, event("phase", 154.0, phase="finished"), event("result", 154.6, result={})):
            console(each)
    assert "Starting; " not in terminal.getvalue()
    with Console(file := io.StringIO()) as console:
        for each in (*RUN, event("phase", 154.0, phase="finished"), event("result", 354.6, result={})):
            console(each)
    assert file.getvalue().splitlines()[-1].endswith("finished")


def test_an_error_is_wrapped_at_the_width_of_the_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    say_error(f"model: 'x' is not offered; one of 60, such as bert, gpt2, resnet; `{PROGRAM} list models` lists them")
    lines = drawn(terminal)
    assert max(map(len, lines)) <= 80
    assert len(lines) == 2


def test_no_color_leaves_no_colour(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with Console(terminal) as console:
        for each in RUN:
            console(each)
        console(event("log", 10.0, level="warning", message="others took memory"))
    assert not re.search(r"\x1b\[[0-9;]*3[0-9](;|m)", terminal.getvalue())


def test_the_living_line_is_redrawn_while_nothing_happens(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(living_line, "REDRAWN_A_SECOND", 100.0)
    with Console(terminal):
        before, until = len(terminal.getvalue()), time.monotonic() + 30
        while len(terminal.getvalue()) < 3 * before and time.monotonic() < until:
            time.sleep(0.01)
        assert len(terminal.getvalue()) >= 3 * before


def test_the_first_line_is_taken_over_by_the_run(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", terminal)
    with first_line(["bert-tiny", "cpu"]):
        assert "Starting" in terminal.getvalue()
        first = living_line._current
        with Console(terminal):
            assert living_line._current is first
    assert living_line._current is None


@pytest.mark.parametrize(
    ("arguments", "stream"),
    [
        (["bert"], "stdout"),
        (["bert", "--json"], "stderr"),
        (["tune", "--", "python", "train.py", "--json"], "stdout"),
        (["estimate", "bert", "--gpu", "all"], "stderr"),
        (["bert", "--events"], None),
        (["bert", "--help"], None),
        (["gpus"], None),
        ([], None),
    ],
)
def test_only_a_command_that_works_for_a_while_has_a_first_line(arguments: list[str], stream: str | None) -> None:
    assert stream_of(arguments) is (None if stream is None else getattr(sys, stream))


def test_the_first_line_needs_neither_torch_nor_the_modules_of_the_commands() -> None:
    code = (
        "import sys, engine.__main__; loaded = [m for m in sys.modules if m.startswith(('torch', 'engine.r'))]; "
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_others_write_to_standard_error_comes_above_the_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with Console(terminal) as console:
        console(RUN[0])
        sys.stderr.write("reported: https://memorymark.example.org/runs/812/\n")
    assert "reported: https://memorymark.example.org/runs/812/" in drawn(terminal)
    assert sys.stderr is terminal


def test_a_command_in_an_error_stays_whole_above_the_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    error = f"give a command, as in: {PROGRAM} tune --device cpu -- python train.py --batch-size {{batch_size}}"
    monkeypatch.setattr(sys, "stderr", terminal)
    with first_line(["estimate"]):
        say_error(error)
    assert f"error: {error}" in drawn(terminal)


@pytest.mark.parametrize(
    ("spec", "phase", "text"),
    [
        ({}, {"phase": "searching", "batch_size": 22, "step": 3}, "batch 22, step 3 of 3"),
        ({}, {"phase": "searching", "batch_size": 22, "step": 4}, "batch 22, step 4"),
        ({"soak_steps": 40}, {"phase": "soaking", "batch_size": 2_200, "step": 3}, "batch 2,200, step 3 of 40"),
        ({}, {"phase": "predicting", "cards": 34, "cards_done": 11}, "GPU 12 of 34"),
        (
            {},
            {"phase": "predicting", "cards": 1, "cards_done": 1, "stage": "change 3 of 12: bf16"},
            "change 3 of 12: bf16",
        ),
        ({}, {"stage": "importing torch"}, "importing torch"),
        ({}, {}, ""),
    ],
)
def test_what_is_tried_is_said_in_a_few_words(spec: dict[str, Any], phase: dict[str, Any], text: str) -> None:
    assert what_is_tried(phase, so_far(spec, phase, ())) == text


def test_a_command_counts_its_starts() -> None:
    progress = {"phase": "searching", "batch_size": 512}
    known = so_far({}, progress, ())
    assert what_is_tried(progress, known, StartUnderWay(1, 6, None)) == "start 1 of about 6 with 512"
    assert what_is_tried(progress, known, StartUnderWay(4, 7, 25.4)) == "start 4 of about 7 with 512, 25 s each"
    assert what_is_tried(progress, known, StartUnderWay(8, 7, 25.4)) == "start 8 with 512, 25 s each"


@pytest.mark.parametrize(
    ("seconds", "left", "text"),
    [
        (0.2, None, ""),
        (12.0, None, "12 s so far"),
        (12.0, 175.0, "about 3 min left"),
        (12.0, 0.0, "longer than expected"),
    ],
)
def test_the_time_is_one_rounded_figure(seconds: float, left: float | None, text: str) -> None:
    assert describe_time(Doing("Search", "", seconds, left)) == text


def test_of_a_race_the_most_that_its_time_budget_leaves_is_said() -> None:
    assert describe_time(Doing("Speeds", "", 12.0, 1_500.0, is_most=True)) == "at most 25 min left (its time budget)"


def test_a_phase_without_time_has_no_zero_and_one_that_was_left_out_no_line() -> None:
    assert phase_line("curve", "3 sizes", 0.0) == "✓ Smaller sizes   3 sizes"
    assert phase_line("explaining", "", 0.0) == ""
    assert phase_line("timing", "4 rounds", 9.0, is_warned=True) == "! Speeds          4 rounds  (9.0 s)"


def sizes(*found: tuple[int, Outcome]) -> list[Probe]:
    return [Probe(size, outcome) for size, outcome in found]


@pytest.mark.parametrize(
    ("probes", "text"),
    [
        (
            [(22, Outcome.FITS), (64, Outcome.OUT_OF_MEMORY)],
            "22 trained, 64 ran out of memory; nothing between was tried.",
        ),
        ([(22, Outcome.FITS), (23, Outcome.OUT_OF_MEMORY)], "22 trained, 23 ran out of memory."),
        ([(1, Outcome.FITS), (2_200, Outcome.FITS)], "2,200 trained; nothing larger was tried."),
        ([(1, Outcome.OUT_OF_MEMORY)], "1 ran out of memory; nothing smaller trained."),
        ([(8, Outcome.FITS), (64, Outcome.SIZE_LIMIT)], "8 trained, 64 met a size limit; nothing between was tried."),
        ([], ""),
    ],
)
def test_a_run_that_is_stopped_says_what_its_probes_showed(probes: list[tuple[int, Outcome]], text: str) -> None:
    assert known_so_far(sizes(*probes), {}) == text


@pytest.mark.parametrize(
    ("probes", "trying", "text"),
    [
        ([(22, Outcome.FITS)], 23, "22 trained; 23 was being tried."),
        ([(22, Outcome.FITS)], 22, "22 trained; nothing larger was tried."),
        (
            [(22, Outcome.FITS), (64, Outcome.OUT_OF_MEMORY)],
            30,
            "22 trained, 64 ran out of memory; 30 was being tried.",
        ),
        ([(16, Outcome.OUT_OF_MEMORY)], 8, "16 ran out of memory; 8 was being tried."),
    ],
)
def test_a_run_that_is_stopped_names_the_size_that_ran(
    probes: list[tuple[int, Outcome]], trying: int, text: str
) -> None:
    assert known_so_far(sizes(*probes), {"batch_size": trying}) == text


def test_an_estimate_that_is_stopped_counts_its_gpus() -> None:
    assert known_so_far((), {"cards": 34, "cards_done": 12}) == "12 of 34 GPUs were estimated."


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_what_is_known_is_a_note_of_the_exception_that_ends_a_run(error: BaseException) -> None:
    console = Console(io.StringIO())
    for each in RUN:
        console(each)
    with pytest.raises(type(error)), console:
        raise error
    assert error.__notes__ == ["22 trained, 23 ran out of memory."]
