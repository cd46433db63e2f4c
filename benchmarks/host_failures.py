"""Fails one of two ranks on two hosts, or a host itself, and looks what `tune` makes of it on both.

    sudo python benchmarks/host_failures.py                          # 60 failures
    sudo python benchmarks/host_failures.py --minutes 25 --at-once 2 # as many as fit; called again, it goes on
    sudo python benchmarks/host_failures.py --only 17                # one of them, by its number

A host is a network namespace of this machine with its own locks; a pair of virtual cables joins two of them. On each
runs one gloo rank of `torchrun --nnodes 2`, watched as `tune` watches it (`engine/tune/hosts/`): host 0 decides, host 1
follows. In four of five cases a rank fails as in `rank_failures.py`; in the others `tune` is killed or frozen on one
host, or the cable is cut. A case must end on both hosts within its limit, leave no process and no lock, and be no
answer: a probe that failed, out of memory only where the rank ran out of memory, or the sentence that a host is lost.
Frozen processes are waked at the end of the case: what is then left is counted. A start whose limit came before its
failure, as on a busy machine, is left out: the next call makes it again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.rank_failures import SCRIPT, Failure, are_free, failures, is_right  # noqa: E402 - the checkout is put first
from engine.errors import CommandUntunable, EngineError, HostLost  # noqa: E402
from engine.results.result import Outcome  # noqa: E402
from engine.tune.devices import devices_held  # noqa: E402
from engine.tune.evidence import evidence_of  # noqa: E402
from engine.tune.hosts.coordinator import joined_hosts  # noqa: E402
from engine.tune.hosts.participant import follow  # noqa: E402
from engine.tune.hosts.rendezvous import rendezvous_of  # noqa: E402
from engine.tune.spec import TuneSpec  # noqa: E402
from engine.tune.start.launch import Watching, start  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "host_failures.cpu.jsonl"
OF_A_HOST = ("tune_is_killed", "tune_freezes", "cable_is_cut")
BATCH_SIZE, SEED = 8, 20_261_127
LAST_STEP = 10
ENDING_SECONDS = 100.0  # beyond the limit: a silent host is waited for 30 s, another 30 s for its end
ADDRESS = "10.77.{pair}.{host}"


def cases(count: int) -> list[Failure]:
    """Return the failures, the same each time: every fifth is one of a host."""
    rng, of_ranks = random.Random(SEED), iter(failures(count))
    return [
        Failure(number, rng.choice(OF_A_HOST), "between_steps", rng.randrange(1, LAST_STEP + 1), rng.randrange(2))
        if number % 5 == 4
        else Failure(**{**asdict(next(of_ranks)), "number": number})
        for number in range(count)
    ]


def main() -> int:
    """Run the failures and write what came of them; 1 where one went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no case after that time")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--limit-seconds", type=float, default=60.0, help="of each start")
    parser.add_argument("--only", type=int)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        return side(json.loads(options.side))
    until, chosen = time.monotonic() + 60 * options.minutes, cases(options.count)
    pairs: Queue[int] = Queue()
    for pair in range(options.at_once):
        pairs.put(pair)

    def run(failure: Failure) -> None:
        if time.monotonic() > until:
            return
        pair = pairs.get()
        try:
            line = tried(failure, pair, options.limit_seconds)
        finally:
            pairs.put(pair)
        if not line["was_reached"]:
            print(f"{failure.number} did not come to its failure: {line['message']}", file=sys.stderr)
            return
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")

    if options.only is not None:
        print(json.dumps(tried(chosen[options.only], 0, options.limit_seconds), indent=1))
        return 0
    done = {line["number"] for line in results()}
    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(run, [failure for failure in chosen if failure.number not in done]))
    report = summary(results())
    print(json.dumps(report, indent=1))
    return int(any(report[name] for name in ("hangs", "leftovers", "locks_held", "wrong_answers")))


def results() -> list[dict[str, Any]]:
    """Return what came of the failures so far."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "failures_forced": len(lines),
        "hangs": [line["number"] for line in lines if not line["ended_in_time"]],
        "leftovers": [line["number"] for line in lines if line["left_running"]],
        "locks_held": [line["number"] for line in lines if not line["locks_are_free"]],
        "wrong_answers": [line["number"] for line in lines if not line["is_right"]],
        "ended_as": dict(sorted(Counter(f"{line['how']}: {line['answer']}" for line in lines).items())),
        "longest_seconds": max((line["seconds"] for line in lines), default=0.0),
    }


def tried(failure: Failure, pair: int, limit_seconds: float) -> dict[str, Any]:
    """Run one case on a pair of hosts; how both ended, and what the training was taken for."""
    hosts = [f"mm{pair}a", f"mm{pair}b"]
    with tempfile.TemporaryDirectory() as folder:
        cabled(hosts, pair)
        try:
            return _tried(failure, pair, hosts, Path(folder), limit_seconds)
        finally:
            for host in hosts:
                subprocess.run(["ip", "netns", "del", host], check=False)


def cabled(hosts: list[str], pair: int) -> None:
    """Make two network namespaces with a cable between them."""
    for host in hosts:
        subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "add", host], check=True)
    ends = [f"mmv{pair}{n}" for n in range(2)]
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
    for n, (host, end) in enumerate(zip(hosts, ends, strict=True)):
        subprocess.run(["ip", "link", "set", end, "netns", host], check=True)
        address = ADDRESS.format(pair=pair, host=n + 1)
        for line in (f"addr add {address}/24 dev {end}", f"link set {end} up", "link set lo up"):
            subprocess.run(["ip", "-n", host, *line.split()], check=True)


def _tried(failure: Failure, pair: int, hosts: list[str], folder: Path, limit_seconds: float) -> dict[str, Any]:
    reached = folder / "reached"
    began = time.monotonic()
    if failure.how in OF_A_HOST:  # not the start's limit has to end these
        limit_seconds *= 3
    sides = [begun(failure, pair, number, host, folder, limit_seconds) for number, host in enumerate(hosts)]
    has_failed = failure.how in OF_A_HOST and fail_host(failure, pair, hosts, sides, folder, began + limit_seconds)
    until = began + limit_seconds + ENDING_SECONDS
    while time.monotonic() < until and any(each.poll() is None for each in survivors(failure, sides)):
        time.sleep(0.1)
    seconds = time.monotonic() - began
    ended_in_time = all(each.poll() is not None for each in survivors(failure, sides))
    if failure.how == "tune_freezes":
        sides[failure.rank].send_signal(signal.SIGCONT)
    for each in sides:
        with suppress(subprocess.TimeoutExpired):
            each.wait(30)
    left = [pid for host in hosts for pid in running_on(host)]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    said = [json.loads((folder / f"said{n}").read_text()) if (folder / f"said{n}").exists() else {} for n in range(2)]
    judge = said[1] if failure.how in OF_A_HOST and failure.rank == 0 and failure.how != "cable_is_cut" else said[0]
    return {
        **asdict(failure),
        "answer": judge.get("answer", "none"),
        "message": str(judge.get("message", "")).replace(f"{ROOT}/", "")[:300],
        "other_side": str(said[1 - said.index(judge)].get("answer", "none")),
        "was_reached": has_failed if failure.how in OF_A_HOST else reached.exists(),
        "is_right": judged(failure, said),
        "limit_seconds": limit_seconds,
        "ended_in_time": ended_in_time,
        "left_running": left,
        "locks_are_free": all(are_free(folder / f"locks{number}") for number in range(2)),
        "seconds": round(seconds, 2),
    }


def begun(
    failure: Failure, pair: int, number: int, host: str, folder: Path, limit_seconds: float
) -> subprocess.Popen[bytes]:
    """Start one side in its namespace."""
    request = {**asdict(failure), "pair": pair, "host": number, "folder": str(folder), "limit_seconds": limit_seconds}
    own = {
        "MEMORYMARK_LOCK_DIR": str(folder / f"locks{number}"),
        "MEMORYMARK_HOST": f"host{number}",
        "GLOO_SOCKET_IFNAME": f"mmv{pair}{number}",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        ["ip", "netns", "exec", host, sys.executable, __file__, "--side", json.dumps(request)],
        env={**os.environ, **own},
        stderr=(folder / f"errors{number}").open("wb"),
        start_new_session=True,
    )


def fail_host(
    failure: Failure,
    pair: int,
    hosts: list[str],
    sides: list[subprocess.Popen[bytes]],
    folder: Path,
    until: float,
) -> bool:
    """Fail a host once its rank is in the step that was drawn; whether it came that far."""
    while not (folder / "reached").exists():
        if time.monotonic() > until or any(each.poll() is not None for each in sides):
            return False
        time.sleep(0.02)
    if failure.how == "cable_is_cut":
        end = f"mmv{pair}{failure.rank}"
        subprocess.run(["ip", "-n", hosts[failure.rank], "link", "set", end, "down"], check=True)
    else:
        sides[failure.rank].send_signal(signal.SIGKILL if failure.how == "tune_is_killed" else signal.SIGSTOP)
    return True


def survivors(failure: Failure, sides: list[subprocess.Popen[bytes]]) -> list[subprocess.Popen[bytes]]:
    """Return the sides that have to end by themselves: all but one that is frozen."""
    return [each for n, each in enumerate(sides) if (failure.how, failure.rank) != ("tune_freezes", n)]


def judged(failure: Failure, said: list[dict[str, Any]]) -> bool:
    """Whether the failure was taken for one: of a host, by each side that is left to say so."""
    if failure.how not in OF_A_HOST:
        return is_right(failure, said[0].get("answer", Outcome.FITS)) and said[1].get("answer") == "done"
    left = [each for n, each in enumerate(said) if failure.how == "cable_is_cut" or n != failure.rank]
    return all(each.get("answer") == HostLost.code for each in left)


def running_on(host: str) -> list[int]:
    """Return the processes that are still in a namespace."""
    found = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def side(request: dict[str, Any]) -> int:
    """Be one host of a case, and write what it says at its end."""
    said: dict[str, Any] = {"answer": "none"}
    try:
        said = _side(request)
    except EngineError as error:
        said = {"answer": error.code, "message": str(error)}
    finally:
        Path(request["folder"], f"said{request['host']}").write_text(json.dumps(said))
    return 0


def _side(request: dict[str, Any]) -> dict[str, Any]:
    address, folder = ADDRESS.format(pair=request["pair"], host=1), Path(request["folder"])
    # a host fails from outside, when its rank says that it is in that step: that rank then goes on
    how = "goes_on" if request["how"] in OF_A_HOST else request["how"]
    where = (how, request["moment"], str(request["step"]), str(request["rank"]), str(folder / "reached"))
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1")
    launcher += ("--node-rank", str(request["host"]), "--master-addr", address, "--master-port", "29500")
    spec = TuneSpec((*launcher, str(SCRIPT), "{batch_size}", *where), device="cpu", batch="template")
    rendezvous = rendezvous_of(spec.command, {})
    assert rendezvous is not None
    if request["host"]:
        status = follow(spec, rendezvous, lambda: devices_held(spec), lambda text: print(text, file=sys.stderr))
        return {"answer": "done", "message": f"status {status}"}
    watching = Watching(memory_steps=5, timed_steps=1_000_000 if request["how"] in OF_A_HOST else 6, timed_seconds=600)
    with devices_held(spec), joined_hosts(rendezvous, spec, lambda _: None) as begin:
        assert begin is not None
        readings, ended = start(begin, BATCH_SIZE, watching, seconds=request["limit_seconds"])
        try:
            evidence = evidence_of(readings, ended, BATCH_SIZE, limit_bytes=None, batch="template", honoured=())
        except CommandUntunable as reason:
            return {"answer": reason.code, "message": str(reason)}
        return {"answer": str(evidence.probe.outcome), "message": evidence.probe.error_message or ""}


if __name__ == "__main__":
    sys.exit(main())
