"""docs/api.md, done as it is written: every command against a served portal, every answer compared with the page's.

Figures, moments and ids differ from run to run, so their kind is compared; words that programs read must be the same.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User

from analysis.models import Device, Run
from analysis.workers import tasks
from analysis.workers.fork_signs import Heartbeat, StopPipe
from tests.factories import make_device
from tests.fake_engine import FACTS, FAKE_ENGINE

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs curl and bash"),
]
PAGE = Path(django_settings.BASE_DIR) / "docs" / "api.md"
WRITTEN_ADDRESS = "http://127.0.0.1:5001"
LEFT_OUT = "..."
WORDS_FOR_PROGRAMS = {
    *("kind", "state", "code", "title", "model", "reason", "parameter", "pointer", "error_code"),
    *("certified", "differs", "has_figures", "may_move_figures", "may_write", "status", "instance", "mismatches"),
}
END = "\x1e"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def steps() -> Iterator[tuple[str, str]]:
    """Each command with the answer that stands below it."""
    for block in blocks("console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = step.splitlines()
            size = next((n for n, line in enumerate(lines) if n and not line.startswith("> ")), len(lines))
            command = [lines[0], *(line.removeprefix("> ") for line in lines[1:size])]
            yield "\n".join(command), "\n".join(lines[size:])


class Shell:
    """One bash for the whole tour: what a command sets, the next one has."""

    def __init__(self, site: str) -> None:
        self.site = site
        environment = {**os.environ, "PASSWORD": "a password", "MEMORYMARK": site}
        self.process = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def does(self, command: str) -> str:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{command.replace(WRITTEN_ADDRESS, self.site)}\nprintf '\\n{END}\\n'\n")
        stdin.flush()
        lines = []
        while (line := stdout.readline()) not in ("", f"{END}\n"):
            lines.append(line)
        return "".join(lines).strip().replace(self.site, WRITTEN_ADDRESS)

    def end(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, settings) -> Device:
    """What the fake engine says it runs on; its worker is this process."""
    device = make_device(name=FACTS.name, capacity_bytes=FACTS.capacity_bytes)
    monkeypatch.setattr(tasks, "_context", tasks.WorkerContext(device.pk, StopPipe(), Heartbeat()))
    settings.ENGINE_COMMAND = (*FAKE_ENGINE, "with_stack")
    return device


@pytest.fixture
def shell(live_server, device: Device) -> Iterator[Shell]:
    User.objects.create_superuser("admin", password="a password")
    shell = Shell(live_server.url)
    yield shell
    shell.end()


def agrees(written: Any, answered: Any, where: str = "answer", name: str = "") -> None:
    """Whether the page tells the truth about this part of an answer."""
    if isinstance(written, dict):
        assert isinstance(answered, dict), f"{where}: {answered}"
        told = {key: value for key, value in written.items() if key != LEFT_OUT}
        if LEFT_OUT not in written:
            assert set(answered) == set(told), where
        for key, value in told.items():
            assert key in answered, f"{where} has no {key}: {answered}"
            agrees(value, answered[key], f"{where}.{key}", key)
    elif isinstance(written, list):
        rows = [row for row in written if row != LEFT_OUT]
        assert len(answered) >= len(rows) if LEFT_OUT in written else len(answered) == len(rows), f"{where}: {answered}"
        for row, actual in zip(rows, answered, strict=False):
            agrees(row, actual, where, name)
    elif name in WORDS_FOR_PROGRAMS and not (name == "instance" and re.search(r"\d", str(written))):
        assert answered == written, where
    else:
        assert kind_of(answered) == kind_of(written), f"{where}: {answered!r}, written {written!r}"


def kind_of(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def said(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.slow
def test_every_command_of_the_tour_is_answered_as_the_page_says(shell: Shell) -> None:
    for command, written in steps():
        if command.startswith("until "):
            assert tasks.wake().endswith("finished")
        answered = shell.does(command)
        if isinstance(said(written), dict):
            agrees(said(written), said(answered), command)
        elif command.startswith("curl -sf"):  # the batch size differs, what follows does not
            assert answered.split("\n")[1:] == written.split("\n")[1:], command
            assert answered.split("\n")[0].isdecimal()
        else:
            assert answered == written, command
    assert Run.objects.filter(reported_from="").count() == 2


def test_the_ten_lines_of_python_start_a_run_and_read_its_recommendation(shell: Shell) -> None:
    [program] = blocks("python")
    token = shell.does(next(command for command, _ in steps() if command.startswith("TOKEN=")) + "\necho $TOKEN")
    environment = {**os.environ, "MEMORYMARK": shell.site, "TOKEN": token}
    arguments = [sys.executable, "-c", program]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    ends_at = monotonic() + 30
    while not Run.objects.exists() and process.poll() is None and monotonic() < ends_at:
        sleep(0.05)
    assert tasks.wake().endswith("finished")
    assert process.communicate(timeout=30)[0].split() == ["finished", "batch", "size", "8"]
    assert len([line for line in program.splitlines() if line and not line.startswith("import")]) <= 10
