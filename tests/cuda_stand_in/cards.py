"""Made-up cards for a test: their settings, programs and tenants on them, and what their log tells.

One folder is one set of cards (README.md). Knobs are named without their prefix: `set(memory=4 * GIB)` sets
STAND_IN_MEMORY.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from engine.errors import WorkloadFailed
from engine.facts.memory_breakdown import MemoryBreakdown
from engine.facts.result import Probe, RunResult
from engine.questions.size import measure
from engine.race.speed.comparison import TimedBlock
from engine.settings.spec import RunSpec
from engine.text.units import MIB
from engine.trainings.catalogue.handle import WorkerHandle

ROOT = Path(__file__).resolve().parents[2]
CONTEXT_BYTES = 480 * MIB
ENGINE = (sys.executable, "-m", "tests.cuda_stand_in.hurried_engine")
# what would change the outcome, were it left over from whoever runs the tests
_SCRUBBED = ("STAND_IN_", "CUDA_", "NVIDIA_", "PYTORCH_", "TORCH_", "CUBLAS_", "LD_PRELOAD")


def uuid(card: int = 0) -> str:
    text = bytes(range(0x10 * (card + 1), 0x10 * (card + 1) + 16)).hex()
    return f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Cards:
    """A set of cards that nobody has used yet."""

    def __init__(self, folder: Path, build: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_SCRUBBED)}
        path = os.pathsep.join([build["PYTHONPATH"], str(ROOT)])
        self.environment = {**kept, **build, "PYTHONPATH": path, "STAND_IN_FOLDER": str(folder)}
        self.environment["MEMORYMARK_LOCK_DIR"] = str(folder / "locks")  # all made-up cards have the same names
        self._tenants: list[Tenant] = []

    def set(self, **knobs: object) -> None:
        """Give the cards these settings and no other. Whatever process begins or asks NVML from now on sees them."""
        lines = [f"STAND_IN_{name.upper()}={value}\n" for name, value in knobs.items()]
        fresh = self.folder / "knobs.new"
        fresh.write_text("".join(lines))
        fresh.rename(self.folder / "knobs")

    def renew(self, **knobs: object) -> None:
        """Put other cards into the machine: nobody is on them and nothing is in their log."""
        self.end_tenants()
        for name in ("cards", "log"):
            (self.folder / name).unlink(missing_ok=True)
        self.set(**knobs)

    def run(self, *command: str, seconds: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env={**self.environment, **environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def python(self, code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-c", code, *arguments, **environment)

    def engine(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(*ENGINE, *arguments, **environment)

    def tenant(self) -> Tenant:
        self._tenants.append(Tenant(self.environment))
        return self._tenants[-1]

    def end_tenants(self) -> None:
        while self._tenants:
            self._tenants.pop().end()

    @property
    def log(self) -> list[str]:
        """What the driver wrote: `<process id> context <uuid>`, `<process id> refuses cudaMalloc`, ..."""
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def contexts(self) -> list[tuple[int, str]]:
        """Every context that was ever made: process id and uuid of the card."""
        words = [line.split() for line in self.log]
        return [(int(w[0]), w[2]) for w in words if w[1] == "context"]

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """What this process starts meanwhile runs on the cards."""
        with mock.patch.dict(os.environ, self.environment, clear=True):
            yield


class Tenant:
    """Somebody else's process on the cards."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, str(Path(__file__).with_name("tenant.py"))]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def take(self, size_bytes: int, device: int = 0) -> int:
        """Hold so much more, context not counted. The CUDA error, 0 for success."""
        return self._tell(f"take {device} {size_bytes}")

    def open_context(self, device: int = 0) -> int:
        return self._tell(f"context {device}")

    def give_back(self) -> int:
        """Let go of all but the context."""
        return self._tell("give")

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _tell(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class Untimed:
    """A worker that leaves the timing out: what is tested is memory, and seconds of timing cost seconds of tests."""

    def __init__(self, worker: WorkerHandle) -> None:
        self._worker = worker

    def __getattr__(self, name: str) -> object:
        return getattr(self._worker, name)

    def probe(self, batch_size: int, *, with_kinds: bool, **how: object) -> Probe:
        return self._worker.probe(batch_size, with_kinds=False, **how)  # type: ignore[arg-type]

    def time(self, *_: object, **__: object) -> TimedBlock:
        raise WorkloadFailed("no speed is measured here")


class WarmEngine:
    """Runs of one model, all from one worker process: torch is imported once, and each session is forked from it."""

    def __init__(self, cards: Cards, model: str = "bert-tiny", **settings: object) -> None:
        self.cards, self.model = cards, model
        self.worker = WorkerHandle(RunSpec(**{"model": model, "device": "cuda", **settings}))
        with cards.in_force():
            self.worker.open()

    def fresh(self, spec: RunSpec | None = None, **knobs: object) -> WorkerHandle:
        """The worker without a session, for other cards and another run."""
        self.worker.close()
        self.cards.renew(**knobs)
        self.worker.spec = spec or RunSpec(self.model, device="cuda")
        self.worker.device, self.worker.beside_bytes = None, None
        self.worker.environment, self.worker.sessions = {}, 0
        return self.worker

    def measure(
        self,
        knobs: dict[str, object],
        emit: Callable[[dict], None] = lambda _: None,
        *,
        estimates: bool = False,
        **fields: object,
    ) -> RunResult:
        """A run without speeds on cards with these knobs. `emit` holds the run while it does something."""
        spec = RunSpec(**{"model": self.model, "device": "cuda", "soak_steps": 3, **fields})
        worker = self.fresh(spec, **knobs)
        is_patient = mock.patch("engine.questions.size.FOREIGN_MEMORY_PAUSE_SECONDS", 0.0, create=True)
        with self.cards.in_force(), is_patient:
            return measure(spec, emit, worker=Untimed(worker), estimates=estimates, explains=False)

    def probe(self, knobs: dict[str, object], batch_size: int, seconds: float = 60, **fields: object) -> Probe:
        """One size in a fresh session, on cards with these knobs."""
        spec = RunSpec(**{"model": self.model, "device": "cuda", **fields})
        worker = self.fresh(spec, **knobs)
        with self.cards.in_force():
            return worker.probe(batch_size, steps=3, with_kinds=False, seconds=seconds)

    def explain(self, knobs: dict[str, object], batch_size: int, **fields: object) -> MemoryBreakdown:
        """What fills the memory at one size."""
        worker = self.fresh(RunSpec(**{"model": self.model, "device": "cuda", **fields}), **knobs)
        with self.cards.in_force():
            found = worker.explain(batch_size, steps=3, seconds=60)
        assert found is not None
        return found

    def stop(self) -> None:
        self.worker.stop()
        self.cards.end_tenants()
