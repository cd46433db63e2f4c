"""The side of the other hosts: makes each start that the deciding one says, and sends what its ranks note."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import EngineError, HostLost
from ...machine.host import oom_kills
from ...machine.scratch import scratch_folder
from ..seen import last_seen
from ..spec import TuneSpec
from ..start.command import begin_command
from ..start.launch import LAST_STEP, LOOK_SECONDS, OnHost, Place, Running, Watching, last_lines
from .coordinator import MEET_SECONDS, own_name
from .link import Link, Message
from .rendezvous import Rendezvous
from .settings import settings_of

AGAIN_SECONDS, CONNECT_SECONDS = 0.5, 5.0


def follow(
    spec: TuneSpec,
    rendezvous: Rendezvous,
    hold: Callable[[], AbstractContextManager[None]],
    say: Callable[[str], None],
    *,
    seconds: float = MEET_SECONDS,
) -> int:
    """Take part in a measurement that another host decides, until it is over; its exit status.

    `hold` holds this host's devices. Raises HostLost where the other is gone, and what this host cannot do.
    """
    say(f"waiting for the host that decides, at {rendezvous.place}")
    link = _connected(rendezvous, seconds)
    try:
        with hold():
            link.send("hello", host=rendezvous.host, name=own_name(), settings=settings_of(spec))
            done = _served(spec, link, say)
    except EngineError as error:
        link.close("failed", error=error.to_dict())
        raise
    finally:
        link.close()
    say(f"{link.other} ended the measurement: {done['message'] or 'the result is there'}")
    return int(done["status"])


def _connected(rendezvous: Rendezvous, seconds: float) -> Link:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError):
            connection = socket.create_connection((rendezvous.address, rendezvous.port), timeout=CONNECT_SECONDS)
            return Link(connection, f"the host at {rendezvous.place}")
        time.sleep(AGAIN_SECONDS)
    raise HostLost(f"nothing answered at {rendezvous.place} within {seconds:.0f} s: start the same command there, too")


def _served(spec: TuneSpec, link: Link, say: Callable[[str], None]) -> Message:
    """Make the starts until the other host says that all is done; its last message."""
    start: _Start | None = None
    try:
        while True:
            for message in link.receive():
                if message["event"] == "done":
                    return message
                if message["event"] == "start":
                    start = _Start.begun(spec, message)
                elif start is not None and message["event"] == LAST_STEP:
                    start.put_last_step(message["step"])
                elif start is not None and message["event"] == "end":
                    link.send("over", **start.end(link))
                    say(f"batch {start.batch_size}: one start, {time.monotonic() - start.began:.1f} s")
                    start = None
            if start is not None:
                start.send_news(link)
            time.sleep(LOOK_SECONDS)
    finally:
        if start is not None:
            start.end()


@dataclass
class _Start:
    """One start on this host."""

    number: int
    batch_size: int
    began: float
    kills: int
    place: Place
    running: Running
    folders: ExitStack
    sent: set[str] = field(default_factory=set)
    status: int | None = None
    has_ended: bool = False

    @classmethod
    def begun(cls, spec: TuneSpec, message: Message) -> _Start:
        with ExitStack() as folders:
            folder = Path(folders.enter_context(scratch_folder()))
            place = Place(folder / "notes", folder / "out", folder / "log")
            place.notes.mkdir()
            place.out.mkdir()
            place.log.touch()
            watching = Watching(**{**message["watching"], "host": OnHost(**message["watching"]["host"])})
            kills, began = oom_kills(), time.monotonic()
            running = begin_command(spec, message["batch_size"], watching, place)
            kept = folders.pop_all()
        return cls(message["number"], message["batch_size"], began, kills, place, running, kept)

    def put_last_step(self, step: int) -> None:
        """Tell this host's ranks which step is their last."""
        path = self.place.notes / f"{LAST_STEP}.told"
        path.write_text(str(step))
        os.replace(path, self.place.notes / LAST_STEP)

    def send_news(self, link: Link) -> None:
        """Send what was noted since, and that the command has ended by itself."""
        has_just_ended = not self.has_ended and self.running.has_ended()
        if has_just_ended:
            self._end_running()
        for path in sorted(self.place.notes.glob("*.json")):
            if path.name not in self.sent:
                self.sent.add(path.name)
                text = path.read_text()
                link.send("noted", number=self.number, name=path.name, began=self.began, text=text)
        if has_just_ended:
            link.send("ended", number=self.number, status=1 if self.status is None else self.status)

    def end(self, link: Link | None = None) -> Message:
        """End it, and say how it ended; what was noted until then is sent first."""
        with self.folders:
            if not self.has_ended:
                self._end_running()
            if link is None:
                return {}
            self.send_news(link)
            return {
                "number": self.number,
                "status": self.status,
                "last_output": last_lines(self.place.log),
                "kernel_killed": oom_kills() > self.kills and bool(self.status),
                "seen": last_seen(self.place.notes, self.began).text,
            }

    def _end_running(self) -> None:
        self.has_ended, self.status = True, self.running.end()
