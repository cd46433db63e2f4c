"""The side of the host that decides: waits for the others, and makes each start one of all hosts."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

from ...errors import EngineError, HostLost, SpecError
from ...execution import Emit, event_of
from ...machine.device_lock import HOST
from ..spec import TuneSpec
from ..start.command import begin_command
from ..start.launch import KERNEL_KILLED, LAST_STEP, LOOK_SECONDS, Begin, OnHost, Place, Running, Watching, readings_in
from .link import Link, Message
from .merge import distinct_names, have_all_ended, lines_of_host, shift_clock, status_of_all
from .rendezvous import Rendezvous
from .settings import first_difference, settings_of

MEET_SECONDS = 300.0
END_SECONDS = 30.0
"""How long another host may take to end its ranks; its guardian needs at most a third of it."""
NOTICE_SECONDS = 2.0
"""How long before its last step a rank says so: until then every host has been told."""


@contextmanager
def joined_hosts(
    rendezvous: Rendezvous | None, spec: TuneSpec, emit: Emit, *, seconds: float = MEET_SECONDS
) -> Iterator[Begin | None]:
    """Give what starts a training on all of its hosts, once they came; None where it has one.

    What ends this host ends the others, with the same exit status and words. Raises HostLost.
    """
    if rendezvous is None:
        yield None
        return
    message = f"waiting at {rendezvous.place} until all {rendezvous.hosts} hosts came"
    emit(event_of("log", level="info", message=message))
    links = _connected_hosts(rendezvous, spec, seconds)
    status, message = 0, ""
    try:
        hosts = AllHosts(spec, links)
        emit(event_of("log", level="info", message=f"{rendezvous.hosts} hosts: {', '.join(hosts.names)}"))
        yield hosts.begin
    except EngineError as error:
        status, message = error.exit_status, str(error)
        raise
    except BaseException as error:
        status, message = 1, f"ended by {type(error).__name__}"
        raise
    finally:
        for link in links:
            link.close("done", status=status, message=message)


def own_name() -> str:
    """Return what this host is called."""
    return os.environ.get(HOST) or socket.gethostname()


def _connected_hosts(rendezvous: Rendezvous, spec: TuneSpec, seconds: float) -> list[Link]:
    """Wait until every other host came; the line to each, in their order. Raises HostLost and SpecError."""
    came: dict[int, Link] = {}
    waiting: list[Link] = []
    try:
        with _listener(rendezvous) as listener:
            _accept_hosts(listener, rendezvous, settings_of(spec), seconds, came, waiting)
    except BaseException as error:
        for link in (*came.values(), *waiting):
            link.close("done", status=getattr(error, "exit_status", 1), message=str(error))
        raise
    for link in waiting:
        link.close()
    return [link for _, link in sorted(came.items())]


def _listener(rendezvous: Rendezvous) -> socket.socket:
    """Listen where the hosts meet; at every address of this one where it is known by another, as behind a service.

    Debian gives a host's own name an address that no other host reaches, 127.0.1.1: so its other addresses count, too.
    """
    try:
        family, *_, (address, *_) = socket.getaddrinfo(rendezvous.address, rendezvous.port, type=socket.SOCK_STREAM)[0]
        is_name_here = ip_address(address).is_loopback and rendezvous.address not in (address, "localhost")
        listener = socket.socket(family, socket.SOCK_STREAM)
        with ExitStack() as failing:
            failing.enter_context(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("" if is_name_here else rendezvous.address, rendezvous.port))
            except OSError:
                listener.bind(("", rendezvous.port))
            listener.listen()
            failing.pop_all()
    except OSError as error:
        taken = f"cannot listen at {rendezvous.place}: {error.strerror}"
        raise HostLost(f"{taken}; --hosts-port chooses another, on every host") from error
    return listener


def _accept_hosts(
    listener: socket.socket,
    rendezvous: Rendezvous,
    settings: dict[str, str],
    seconds: float,
    came: dict[int, Link],
    waiting: list[Link],
) -> None:
    """Wait for the first word of each host; whoever connects and is none is sent away."""
    until = time.monotonic() + seconds
    while len(came) < rendezvous.hosts - 1:
        if time.monotonic() > until:
            missing = f"{len(came) + 1} of {rendezvous.hosts} hosts came to {rendezvous.place} within {seconds:.0f} s"
            raise HostLost(f"{missing}: start the same command on each, with its own --node-rank")
        if select.select([listener], [], [], LOOK_SECONDS)[0]:
            connection, (address, *_) = listener.accept()
            waiting.append(Link(connection, f"the host at {address}"))
        for link in [*waiting]:
            if (hello := _hello(link, waiting)) is None:
                continue
            link.other = str(hello.get("name"))
            if (setting := first_difference(settings, hello.get("settings"))) is not None:
                raise SpecError("command", f"{link.other} was started with another {setting}: make it the same")
            came[_number(hello, came, rendezvous, link.other)] = link
            waiting.remove(link)


def _hello(link: Link, waiting: list[Link]) -> Message | None:
    """Return the first message of a host; None where it has not come. Whoever says anything else is sent away."""
    try:
        message = next(iter(link.receive()), None)
    except HostLost:
        waiting.remove(link)
        link.close()
        return None
    if message is not None and message["event"] == "failed":
        raise _failure(message, link.other)
    return message


def _number(hello: Message, came: Collection[int], rendezvous: Rendezvous, name: str) -> int:
    """Return the number of a host that came: its `--node-rank`, or the next."""
    number = hello.get("host")
    if rendezvous.host is None:
        return len(came) + 1
    if not isinstance(number, int) or not 0 < number < rendezvous.hosts or number in came:
        its_own = f"each host has its own, below {rendezvous.hosts}"
        raise SpecError("command", f"{name} came as --node-rank {number}: {its_own}")
    return number


def _failure(message: Message, name: str) -> EngineError:
    error = EngineError.from_dict(message["error"])
    error.args = (f"on {name}: {error}",)
    return error


class AllHosts:
    """The hosts of a training: this one, and the lines to the others."""

    def __init__(self, spec: TuneSpec, links: Sequence[Link]) -> None:
        self.spec, self.links, self.number = spec, links, 0
        self.names = distinct_names([own_name(), *(link.other for link in links)])
        for name, link in zip(self.names[1:], links, strict=True):
            link.other = name

    def begin(self, batch_size: int, watching: Watching, place: Place) -> Running:
        """Start the training on every host."""
        self.number += 1
        for name, link in zip(self.names[1:], self.links, strict=True):
            there = replace(watching, host=OnHost(name, decides=False))
            link.send("start", number=self.number, batch_size=batch_size, watching=asdict(there))
        here = replace(watching, host=OnHost(self.names[0], decides=True, notice_seconds=NOTICE_SECONDS))
        began = time.monotonic()
        return _MultiHostStart(self, place, began, begin_command(self.spec, batch_size, here, place))


@dataclass
class _MultiHostStart:
    """One start on all hosts. What the others note is written where this one's own ranks note theirs."""

    hosts: AllHosts
    place: Place
    began: float
    own: Running
    own_status: int | None = None
    has_own_ended: bool = False
    statuses: dict[int, int] = field(default_factory=dict)
    over: dict[int, Message] = field(default_factory=dict)
    gone: dict[int, EngineError] = field(default_factory=dict)
    is_last_step_said: bool = False
    takes_notes: bool = True

    def has_ended(self) -> bool:
        self._poll()
        if self.gone:
            raise next(iter(self.gone.values()))
        self._pass_on_the_last_step()
        if not self.has_own_ended and self.own.has_ended():
            self._end_own()
            # where its guardian was killed, it has no status of its own
            self.own_status = -signal.SIGKILL if self.own_status is None else self.own_status
        return have_all_ended(self._statuses)

    def end(self) -> int | None:
        """End it on every host, and take over what the others say of their end.

        Ranks that lose those of another host note an error. Where nothing had failed before, that says nothing.
        """
        self._poll()
        self.takes_notes = any(reading.has_failed for reading in readings_in(self.place.notes))
        statuses = dict(self.statuses)
        if not self.has_own_ended:
            self._end_own()
        self._send_to_all("end")
        until = time.monotonic() + END_SECONDS
        while len(self.over | self.gone) < len(self.hosts.links):
            if time.monotonic() > until:
                raise HostLost(f"{self._late} did not end its ranks within {END_SECONDS:.0f} s")
            time.sleep(LOOK_SECONDS)
            self._poll()
        if self.gone:
            raise next(iter(self.gone.values()))
        if any(over["kernel_killed"] for over in self.over.values()):
            (self.place.notes / KERNEL_KILLED).touch()
        self.statuses = statuses
        self._append_output()
        return status_of_all([self.own_status, *map(statuses.get, self.over)])

    @property
    def _statuses(self) -> list[int | None]:
        others = map(self.statuses.get, range(len(self.hosts.links)))
        return [self.own_status if self.has_own_ended else None, *others]

    @property
    def _late(self) -> str:
        known = self.over | self.gone
        return ", ".join(link.other for number, link in enumerate(self.hosts.links) if number not in known)

    def _end_own(self) -> None:
        self.has_own_ended, self.own_status = True, self.own.end()

    def _send_to_all(self, event: str, **content: object) -> None:
        for number, link in enumerate(self.hosts.links):
            if number not in self.gone:
                try:
                    link.send(event, number=self.hosts.number, **content)
                except HostLost as error:
                    self.gone[number] = error

    def _pass_on_the_last_step(self) -> None:
        path = self.place.notes / LAST_STEP
        if not self.is_last_step_said and path.exists():
            self.is_last_step_said = True
            self._send_to_all(LAST_STEP, step=int(path.read_text()))

    def _poll(self) -> None:
        for number, link in enumerate(self.hosts.links):
            if number in self.gone:
                continue
            try:
                for message in link.receive():
                    self._take(number, link, message)
            except HostLost as error:
                self.gone[number] = error

    def _take(self, number: int, link: Link, message: Message) -> None:
        if message["event"] == "failed":
            self.gone[number] = _failure(message, link.other)
        if message.get("number") != self.hosts.number:
            return  # of a start before this one
        if message["event"] == "noted" and self.takes_notes:
            noted = shift_clock(json.loads(message["text"]), self.began - message["began"])
            path = self.place.notes / f"host{number + 1}-{Path(message['name']).name}"
            path.write_text(json.dumps(noted))
        elif message["event"] == "ended":
            self.statuses[number] = message["status"]
        elif message["event"] == "over":
            self.over[number] = message

    def _append_output(self) -> None:
        """Set the last lines of the other hosts behind this one's; not where this one alone has failed."""
        lines = [
            line
            for number, over in sorted(self.over.items(), key=lambda each: bool(self.statuses.get(each[0])))
            if self.statuses.get(number) or not self.own_status
            for line in lines_of_host(self.hosts.names[number + 1], over)
        ]
        with self.place.log.open("a") as log:
            log.writelines(f"{line}\n" for line in lines)
