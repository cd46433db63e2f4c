"""`watch` runs a training as it is: its output, exit status and signals are its own, and a report says what it used."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.deaths.cause import Death
from engine.deaths.signs import Cause
from engine.deaths.words import headline

ROOT = Path(__file__).resolve().parents[3]
TRAINING = """
import sys, time, torch
torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(4_000, 16))
loader = torch.utils.data.DataLoader(data, batch_size=10, shuffle=True, num_workers=int(sys.argv[1]))
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.AdamW(model.parameters())
kept = []
for (inputs,) in loader:
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    if sys.argv[2] == "grows":
        kept.append(torch.ones(100_000))
        time.sleep(0.01)
    if sys.argv[2] == "raises" and loss.isfinite():
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
print(f"{loss.item():.9f}")
"""


def run(*arguments: str, folder: Path, watched: bool = True) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(TRAINING)
    command = [sys.executable, "train.py", *arguments]
    words = [sys.executable, "-m", "engine", "watch", "--json", "--", *command] if watched else command
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def watch(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    words, environment = [sys.executable, "-m", "engine", "watch", *arguments], {**os.environ, **variables}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)


def report_of(done: subprocess.CompletedProcess[str]) -> dict:
    return json.loads(done.stderr.strip().splitlines()[-1])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_output_and_the_losses_are_those_of_the_command_alone(workers: str, tmp_path: Path) -> None:
    watched, alone = run(workers, "", folder=tmp_path), run(workers, "", folder=tmp_path, watched=False)
    assert (watched.returncode, watched.stdout) == (0, alone.stdout)
    report = report_of(watched)
    assert (report["steps"], report["batch_size"], report["death"], report["growth"]) == (400, 10, None, None)
    assert report["peak_bytes"] > 2**20


def test_growth_is_told_while_the_training_still_works(tmp_path: Path) -> None:
    report = report_of(run("0", "grows", folder=tmp_path))
    assert report["growth"]["bytes_per_step"] == pytest.approx(400_000, rel=0.25)


def test_an_error_is_explained_and_keeps_its_status(tmp_path: Path) -> None:
    done = run("0", "raises", folder=tmp_path)
    report = report_of(done)
    assert (done.returncode, report["exit_status"]) == (1, 1)
    assert report["death"]["headline"] == "A device ran out of memory; the text does not show what took it."
    assert "RuntimeError: CUDA out of memory" in done.stderr


def test_a_signal_ends_watch_as_it_ended_the_command(tmp_path: Path) -> None:
    done = watch("--", "sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM
    assert "the command ended with SIGTERM" in done.stderr


def test_a_command_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = watch("--", "no-such-program")
    assert (done.returncode, "cannot be started" in done.stderr) == (2, True)


def test_a_signal_to_a_whole_group_reaches_the_command_once(tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(
        "import signal, time\nseen = []\nsignal.signal(signal.SIGUSR1, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\nend = time.monotonic() + 60\n"
        "while not seen and time.monotonic() < end: time.sleep(0.05)\ntime.sleep(1)\nprint(len(seen))\n"
    )
    words = [sys.executable, "-m", "engine", "watch", "--", sys.executable, str(tmp_path / "count.py")]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=ROOT, text=True, start_new_session=True, **streams) as process:
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGUSR1)
        assert process.stdout.read() == "1\n"
    assert process.returncode == 0


def test_of_several_ranks_the_first_that_failed_is_explained(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, time, torch\n"
        "rank = os.environ['RANK']\n"
        "model = torch.nn.Linear(4, 4)\noptimizer = torch.optim.SGD(model.parameters())\n"
        "model(torch.ones(2, 4)).sum().backward()\noptimizer.step()\n"
        "time.sleep(0.0 if rank == '1' else 3.0)\n"
        "raise ValueError('boom') if rank == '1' else ConnectionError('NCCL error: lost')\n"
    )
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"]
    done = watch("--json", "--", *torchrun, folder=tmp_path, PYTHONPATH=str(ROOT))
    assert (done.returncode, report_of(done)["death"]["line"]) == (1, "ValueError: boom")


def test_a_device_that_is_none_is_refused_before_the_command_starts() -> None:
    done = watch("--device", "banana", "--", "echo", "started")
    assert (done.returncode, done.stdout, "is not a device" in done.stderr) == (2, "", True)


def test_a_command_without_a_training_is_said_to_have_none() -> None:
    done = watch("--", "true")
    assert (done.returncode, "saw no step of an optimizer of torch" in done.stderr) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("death", "cause", "said"),
    [
        ("grows graphs 5.0", "grows", "tensors of 20480 × 64 behind"),
        ("grows noisy 5.0", "grows", "tensors of many shapes behind"),
        ("long workers 0", "long_batch", "It held a tensor of 16 × 10000 × 64; the largest before was 16 × 40 × 64."),
        ("evaluation late 0", "evaluation", "The peak came in an evaluation"),
        ("saving copies 0", "saving", "Saving ran out of memory"),
    ],
)
def test_a_planted_death_is_told_by_the_steps_before_it(death: str, cause: str, said: str) -> None:
    training = [sys.executable, "benchmarks/planted_deaths/train.py", *death.split()]
    done = watch("--", *training, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", COLUMNS="200")
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr[-2_000:]
    assert headline(Death(Cause(cause))) in done.stderr
