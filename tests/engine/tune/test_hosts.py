"""A training on several hosts is measured as one: where they meet, what they say to each other, how they end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CommandUntunable, DeviceUnavailable, EngineError, HostLost, SpecError
from engine.results.result import Outcome
from engine.tune.evidence import Ended
from engine.tune.hosts import coordinator, participant
from engine.tune.hosts import link as links
from engine.tune.hosts.coordinator import joined_hosts
from engine.tune.hosts.link import Link, decides
from engine.tune.hosts.merge import (
    check_same_gpu,
    distinct_names,
    have_all_ended,
    hosts_of,
    shift_clock,
    status_of_all,
)
from engine.tune.hosts.participant import follow
from engine.tune.hosts.rendezvous import Rendezvous, rendezvous_of, same_everywhere
from engine.tune.hosts.settings import first_difference, settings_of
from engine.tune.reading import Reading
from engine.tune.spec import TuneSpec
from engine.tune.start.launch import Place, Watching, start
from tests.engine.tune.test_evidence import judged, steps
from tests.engine.tune.test_evidence import reading as watched

ROOT = Path(__file__).parents[3]
SCRIPTS = Path(__file__).parent / "scripts"
SCRIPT = ("train.py", "{batch_size}")
STATIC = ("torchrun", "--nnodes=2", "--node_rank", "1", "--master-addr", "a", "--master_port=300")
C10D = ("python", "-m", "torch.distributed.run", "--nnodes", "2", "--rdzv-backend=c10d", "--rdzv-endpoint", "a:400")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("command", "environment", "expected"),
    [
        (("python", "train.py", "--nnodes", "2"), {}, None),
        (("torchrun", "--nproc-per-node", "2", *SCRIPT), {}, None),
        (("torchrun", "--nnodes", "1:1", *SCRIPT, "--nnodes", "4"), {}, None),
        ((*STATIC, *SCRIPT), {}, Rendezvous(2, "a", 301, 1)),
        (("torchrun", "--nnodes", "2", *SCRIPT), {}, Rendezvous(2, "127.0.0.1", 29_501, 0)),
        ((*C10D, *SCRIPT), {}, Rendezvous(2, "a", 401, None)),
        ((*C10D[:-1], "a", *SCRIPT), {}, Rendezvous(2, "a", 29_401, None)),
        ((*C10D[:-1], "[fe80::1]:400", *SCRIPT), {}, Rendezvous(2, "fe80::1", 401, None)),
        (("torchrun", *SCRIPT), {"PET_NNODES": "3", "PET_NODE_RANK": "2"}, Rendezvous(3, "127.0.0.1", 29_501, 2)),
    ],
)
def test_hosts_meet_beside_the_rendezvous_of_their_launcher(command, environment, expected) -> None:
    assert rendezvous_of(command, environment) == expected


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("torchrun", "--nnodes", "1:2", *SCRIPT), "--nnodes 1:2 lets hosts come and go"),
        ((*STATIC, "--max-restarts=3", *SCRIPT), "--max-restarts"),
        ((*STATIC, "--standalone", *SCRIPT), "--standalone"),
        ((*C10D[:4], "2", "--rdzv-backend", "etcd-v2", *SCRIPT), "--rdzv-backend etcd-v2"),
        ((*C10D[:4], "2", "--rdzv-backend", "c10d", *SCRIPT), "needs --rdzv-endpoint HOST:PORT"),
        (("srun", "-N2", *STATIC, *SCRIPT), "put it in front: srun --ntasks-per-node 1"),
        (("srun", "--ntasks-per-node", "8", "python", "train.py"), "put it in front: srun --ntasks-per-node 1"),
        (("torchrun", "--nnodes", "2", "--node-rank", "2", *SCRIPT), "--node-rank is '2'"),
        (("accelerate", "launch", "--num_machines", "2", *SCRIPT), "--num_machines 2"),
    ],
)
def test_what_cannot_be_measured_on_several_hosts_is_refused_by_name(command, named) -> None:
    with pytest.raises(SpecError, match="command: ") as refused:
        rendezvous_of(command, {})
    assert named in str(refused.value)


def test_the_host_that_has_the_address_decides_where_none_is_numbered() -> None:
    assert decides(Rendezvous(2, "127.0.0.1", 1, None))
    assert not decides(Rendezvous(2, "192.0.2.1", 1, None))
    assert (decides(Rendezvous(2, "192.0.2.1", 1, 0)), decides(Rendezvous(2, "127.0.0.1", 1, 1))) == (True, False)


def test_hosts_that_were_started_with_other_settings_are_told_apart() -> None:
    own = TuneSpec((*STATIC, *SCRIPT))
    other_rank = TuneSpec(tuple("0" if part == "1" else part for part in own.command))
    assert same_everywhere(own.command) == ("torchrun", "--nnodes=2", "--master_port=300", *SCRIPT)
    assert first_difference(settings_of(own), settings_of(other_rank)) is None
    assert first_difference(settings_of(own), settings_of(TuneSpec((*STATIC, "other.py", "{batch_size}")))) == "command"
    limited = TuneSpec(own.command, memory_limit_bytes=1)
    assert first_difference(settings_of(own), settings_of(limited)) == "--memory-limit"
    assert first_difference(settings_of(own), None) == "version of MemoryMark"


def trained(rank: int, **noted: Any) -> Reading:
    """What a rank of two noted of steps of 40 samples."""
    return watched(steps(40), rank=rank, world_size=2, **noted)


def reading(**noted: Any) -> Reading:
    return Reading({"marks": [], "card": {}, **noted})


def test_what_another_host_noted_is_read_as_of_this_one() -> None:
    noted = shift_clock({"rank": 1, "marks": [[2.0, "armed", "2.13"], [5.0, "step", 1]]}, 100.0)
    assert noted == {"rank": 1, "marks": [[102.0, "armed", "2.13"], [105.0, "step", 1]]}
    assert hosts_of([reading(host="a"), reading(host="b")]) == ("a", "b")
    assert hosts_of([reading(host=None), reading()]) == ()
    assert distinct_names(["a", "a", "b\n"]) == ["a", "a (1)", "b"]


def test_gpus_of_different_kinds_are_no_one_result() -> None:
    cards = [{"name": name, "total_bytes": 80} for name in ("A100", "A100", "H100")]
    check_same_gpu([reading(host=host, card=card) for host, card in zip("ab", cards[:2], strict=True)])
    with pytest.raises(CommandUntunable, match="A100 on a, H100 on b") as refused:
        check_same_gpu([reading(host=host, card=card) for host, card in zip("ab", cards[1:], strict=True)])
    assert refused.value.code == "gpus_differ"
    with pytest.raises(CommandUntunable, match="A100 of rank 0, H100 of rank 1"):
        check_same_gpu([reading(rank=rank, card=card) for rank, card in enumerate(cards[1:])])


def test_the_worst_rank_of_any_host_decides() -> None:
    found = judged([trained(rank, host=host, peak=900 + rank) for rank, host in enumerate("ab")])
    assert (found.probe.peak_allocated_bytes, found.ranks, found.hosts) == (901, (900, 901), ("a", "b"))


def test_a_start_is_over_where_any_host_failed_and_else_where_all_ended() -> None:
    assert [have_all_ended(each) for each in ([None, None], [0, None], [0, 0], [None, 1])] == [False, False, True, True]
    assert [status_of_all(each) for each in ([None, None], [0, None], [0, 0], [0, 3])] == [None, None, 0, 3]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Link, socket.socket]]:
    """A link, and the raw other end of it."""
    monkeypatch.setattr(links, "ALIVE_SECONDS", 0.01)
    monkeypatch.setattr(links, "SILENT_SECONDS", 0.2)
    monkeypatch.setattr(links, "LAST_SECONDS", 0.1)
    near, far = socket.socketpair()
    link = Link(near, "b")
    yield link, far
    link.close()
    far.close()


def heard_within(link: Link, seconds: float = 5.0) -> list[dict[str, Any]]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if messages := link.receive():
            return messages
        time.sleep(0.01)
    return []


def test_messages_come_whole_in_their_order_and_a_host_that_is_alive_is_none(line) -> None:
    link, far = line
    far.sendall(b'\n{"event": "a", "text": "')
    assert link.receive() == []
    far.sendall(b'x"}\n\n{"event": "b"}\n')
    assert heard_within(link) == [{"event": "a", "text": "x"}, {"event": "b"}]


def test_a_host_that_is_gone_or_silent_is_lost_but_not_what_it_said_before(line) -> None:
    link, far = line
    with pytest.raises(HostLost, match=r"b has been silent for 0 s"):
        heard_within(link)
    far.sendall(b'{"event": "last"}\n')
    far.close()
    assert link.receive() == [{"event": "last"}]
    with pytest.raises(HostLost, match="b is gone"):
        link.receive()


def test_each_side_says_that_it_is_alive(line) -> None:
    link, far = line
    far.settimeout(5)
    assert far.recv(1) == b"\n"
    link.close("done", status=0)
    assert far.makefile().read().strip() == '{"event": "done", "status": 0}'


def meeting_at(port: int, host: int) -> tuple[TuneSpec, Rendezvous]:
    launcher = ("torchrun", "--nnodes", "2", "--node-rank", str(host), "--master-port", str(port - 1))
    spec = TuneSpec((*launcher, *SCRIPT))
    rendezvous = rendezvous_of(spec.command, {})
    assert rendezvous is not None
    return spec, rendezvous


def test_a_host_that_never_comes_ends_the_wait_and_a_stranger_is_sent_away() -> None:
    port = free_port()
    spec, rendezvous = meeting_at(port, 0)

    def strange() -> None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n")

    timer = threading.Timer(0.1, strange)
    timer.start()
    with (
        pytest.raises(HostLost, match="1 of 2 hosts came to 127.0.0.1"),
        joined_hosts(rendezvous, spec, print, seconds=0.5),
    ):
        pass
    timer.join()
    with pytest.raises(HostLost, match="nothing answered at 127.0.0.1"):
        follow(*meeting_at(port, 1), nullcontext, print, seconds=0.1)


def test_a_host_whose_own_name_is_a_loopback_address_listens_where_others_reach_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Debian and Ubuntu write it: `127.0.1.1 node0` in /etc/hosts of node0."""
    port, known = free_port(), socket.getaddrinfo
    names = {"node0": "127.0.1.1"}
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *more, **how: known(names.get(host, host), *more, **how))
    for address, listens in (("node0", "0.0.0.0"), ("127.0.0.1", "127.0.0.1")):
        with coordinator._listener(Rendezvous(2, address, port, 0)) as listener:
            assert listener.getsockname()[0] == listens


def test_hosts_with_different_settings_both_say_so() -> None:
    port = free_port()
    said: list[str] = []
    spec, rendezvous = meeting_at(port, 1)
    other = TuneSpec(spec.command, memory_limit_bytes=2**20)
    thread = threading.Thread(target=lambda: said.append(str(follow(other, rendezvous, nullcontext, said.append))))
    thread.start()
    with (
        pytest.raises(SpecError, match="started with another --memory-limit"),
        joined_hosts(*meeting_at(port, 0)[::-1], print, seconds=10),
    ):
        pass
    thread.join(10)
    assert "another --memory-limit" in said[1]
    assert said[-1] == "2"


@dataclass
class Started:
    """A start on one host whose rank notes `noted` at once, and which goes on until it is ended."""

    noted: Reading
    is_ended: bool = False

    def begun(self, _: object, __: int, watching: Watching, place: Place) -> Started:
        assert watching.host is not None
        (place.notes / "7.json").write_text(json.dumps({**self.noted.data, "host": watching.host.name}))
        place.log.write_text("a line\n")
        return self

    def has_ended(self) -> bool:
        return False

    def end(self) -> None:
        self.is_ended = True


def on_two_hosts(
    monkeypatch: pytest.MonkeyPatch, here: Started, there: Any, seconds: float = 10.0
) -> tuple[list[Reading], Ended, list[str]]:
    """One start of two hosts in two threads; what was noted, how it ended, and what the other one said."""
    said: list[str] = []
    monkeypatch.setattr(coordinator, "begin_command", here.begun)
    monkeypatch.setattr(participant, "begin_command", there)
    port = free_port()

    def other() -> None:
        try:
            follow(*meeting_at(port, 1), nullcontext, said.append)
        except EngineError as error:
            said.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    spec, rendezvous = meeting_at(port, 0)
    try:
        with joined_hosts(rendezvous, spec, lambda _: None, seconds=10) as begin:
            assert begin is not None
            readings, ended = start(begin, 40, Watching(5), seconds=seconds)
    finally:
        thread.join(10)
    return readings, ended, said


def test_a_start_of_two_hosts_is_read_as_one_and_ended_on_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYMARK_HOST", "a")
    here, there = Started(trained(0)), Started(trained(1, peak=950))
    readings, ended, said = on_two_hosts(monkeypatch, here, there.begun)
    found = judged(readings, ended=ended)
    assert (found.ranks, found.hosts) == ((900, 950), ("a", "a (1)"))
    assert (here.is_ended, there.is_ended, ended.exit_status) == (True, True, None)
    assert said[-1].endswith("ended the measurement: the result is there")


def test_a_rank_that_runs_out_of_memory_on_another_host_ends_the_start_on_both(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = trained(1, ended="error", error_type="OutOfMemoryError", error_message="CUDA out of memory")
    here, there = Started(trained(0)), Started(failed)
    readings, ended, _ = on_two_hosts(monkeypatch, here, there.begun)
    assert judged(readings, ended=ended).probe.outcome is Outcome.OUT_OF_MEMORY
    assert (here.is_ended, there.is_ended) == (True, True)


def test_a_silent_rank_of_another_host_has_the_time_limit_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    here, silent = Started(trained(0)), Started(trained(1, ended="none"))
    readings, ended, _ = on_two_hosts(monkeypatch, here, silent.begun, seconds=0.3)
    assert judged(readings, ended=ended).probe.outcome is Outcome.ERROR
    assert ended.last_output[-2].startswith("[")
    assert (here.is_ended, silent.is_ended, ended.timed_out_after_seconds) == (True, True, 0.3)


def test_what_another_host_cannot_do_ends_the_measurement_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise DeviceUnavailable("cuda:7 is not there")

    here = Started(trained(0))
    with pytest.raises(DeviceUnavailable, match=r"on .*: cuda:7 is not there"):
        on_two_hosts(monkeypatch, here, fails)
    assert here.is_ended


@pytest.mark.slow
def test_two_hosts_measure_one_training_and_each_rank_has_its_host(tmp_path: Path) -> None:
    """Two folders of locks stand for two hosts; `benchmarks/host_failures.py` has two network namespaces."""
    port = str(free_port())
    sides = []
    for host in range(2):
        launcher = ("torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1", "--master-port", port)
        training = (*launcher, "--node-rank", str(host), str(SCRIPTS / "ranks.py"), "--batch-size", "{batch_size}")
        tune = ("tune", "--device", "cpu", "--json", "--no-compare-speed", "--max", "24", "--current-batch-size", "24")
        own = {"MEMORYMARK_LOCK_DIR": str(tmp_path / str(host)), "MEMORYMARK_HOST": f"host-{host}"}
        command = [sys.executable, "-m", "engine", *tune, "--", sys.executable, "-m", *training]
        sides.append(
            subprocess.Popen(
                command, cwd=ROOT, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    (out, errors), (followed, said) = (each.communicate(timeout=300) for each in sides)
    assert [each.returncode for each in sides] == [0, 0], errors + said
    training = json.loads(out)["training"]
    assert (training["ranks"], training["rank_hosts"]) == (2, ["host-0", "host-1"])
    assert min(training["rank_peaks_bytes"]) > 200_000
    assert followed == ""
    assert "batch 24: one start" in said
