"""What a dead training left behind is read: the cause where the text shows it, and "cannot tell" where it does not."""

import io
import json

import pytest

from engine.cli.main import main
from engine.deaths.cause import explain
from engine.deaths.figures import read_figures
from engine.deaths.moments import Moment, last_step, moment_of
from engine.deaths.signs import Cause
from engine.deaths.words import changes
from engine.text.units import GIB, MIB

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 23.65 GiB of "
    "which {free} is free. {others}Including non-PyTorch memory, this process has {own} memory in use. Of the "
    "allocated memory {allocated} is allocated by PyTorch, and {pieces} is reserved by PyTorch but unallocated."
)
FULL = {"asked": "2.00 GiB", "free": "1.10 GiB", "own": "22.50 GiB", "allocated": "21.70 GiB", "pieces": "300.00 MiB"}
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total capacity; 9.90 GiB already "
    "allocated; 17.50 MiB free; 10.15 GiB reserved in total by PyTorch)"
)


def new(others: str = "", **changed: str) -> str:
    return NEW.format(**FULL | changed, others=others)


def in_frames(message: str, *functions: str) -> str:
    frames = "".join(f'  File "/x/{each}.py", line 7, in {each}\n    call()\n' for each in functions)
    return f"Traceback (most recent call last):\n{frames}{message}\n"


def test_the_figures_of_a_new_message_are_read_in_bytes() -> None:
    found = read_figures(new("Process 71 has 1.50 GiB memory in use. "))
    assert (found.requested, found.in_pieces, found.others) == (2 * GIB, 300 * MIB, GIB * 3 // 2)
    assert found.processes == (71,)


def test_the_figures_of_an_old_message_are_read_in_bytes() -> None:
    found = read_figures(OLD)
    assert (found.requested, found.free) == (20 * MIB, round(17.5 * MIB))
    assert found.in_pieces == pytest.approx(0.25 * GIB, abs=MIB)
    assert found.others <= 0


def test_in_a_container_the_process_that_holds_the_tensors_is_its_own() -> None:
    text = new("Process 9 has 22.50 GiB memory in use. ").replace(
        "Including non-PyTorch memory, this process has 22.50 GiB memory in use. ", ""
    )
    assert explain(text).cause is Cause.TOO_LARGE


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (in_frames(new(), "train", "training_step", "backward"), Cause.TOO_LARGE),
        (in_frames(OLD, "main", "train_epoch", "forward"), Cause.TOO_LARGE),
        (new(allocated="15.00 GiB", pieces="6.00 GiB"), Cause.IN_PIECES),
        (new("Process 9 has 12.00 GiB memory in use. ", own="10.50 GiB", allocated="10.00 GiB"), Cause.ANOTHER_PROCESS),
        (in_frames(new(), "train", "evaluate", "prediction_step", "forward"), Cause.EVALUATION),
        (in_frames(new(), "train", "_save_checkpoint", "save_model"), Cause.SAVING),
        (in_frames(new(), "main", "from_pretrained", "_load_state_dict_into_model"), Cause.LOADING),
        (" 40%|####      | 400/1000 [01:00<01:30,  6.6it/s]" + new(), Cause.LATE),
        (f"loss: 5.09 : 8613it [27:42,  5.3it/s]{new()}", Cause.LATE),
        (f"It always happens after the 21st epoch.\n{new()}", Cause.LATE),
        (f"{{'train_runtime': 51.7}}\n100%|####| 812/812 [1:26:02<00:00]{new()}", Cause.TOO_LARGE),
        (f"Only during inference, not while it trains: {new()}", Cause.EVALUATION),
        (in_frames(new(), "main", "_merge_lora"), Cause.SAVING),
        (in_frames("RuntimeError: CUDA error: out of memory", "train", "backward"), Cause.TOO_LARGE),
        ("RuntimeError: CUDA error: out of memory", Cause.CANNOT_TELL),
        ("Resource exhausted: OOM when allocating tensor with shape[16,8] on device:GPU:0", Cause.CANNOT_TELL),
        ("=>> PBS: job killed: mem 38427376kb exceeded limit 33554432kb", Cause.HOST_MEMORY),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some were OOM Killed.", Cause.HOST_MEMORY),
        (
            "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9000 bytes.",
            Cause.HOST_MEMORY,
        ),
        ("ray.exceptions.OutOfMemoryError: Task was killed: memory usage threshold of 0.95", Cause.HOST_MEMORY),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.", Cause.WORKER_MEMORY),
        ("RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly", Cause.CANNOT_TELL),
        ("OSError: [Errno 28] No space left on device: 'checkpoint.pt'", Cause.DISK),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", Cause.DRIVER),
        ("Memory access fault by GPU node-1 on address 0x1e4000. Reason: Page not present", Cause.DRIVER),
        ("salloc: error: Node failure on worker-1", Cause.SCHEDULER),
        ("slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-01-01 DUE TO TIME LIMIT ***", Cause.SCHEDULER),
        ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", Cause.COLLECTIVE),
        ("Killed", Cause.CANNOT_TELL),
        ("  exitcode  : -9 (pid: 77)\n  traceback : Signal 9 (SIGKILL) received by PID 77", Cause.CANNOT_TELL),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 9x2)", Cause.NOT_MEMORY),
        ("EOFError: Ran out of input", Cause.NOT_MEMORY),
        ("OSError: [Errno 24] Too many open files", Cause.NOT_MEMORY),
        ("epoch 3: loss 0.31", Cause.CANNOT_TELL),
        ('  File "a.py", line 1, in f\n    raise E("NCCL error")\nValueError: boom', Cause.NOT_MEMORY),
    ],
)
def test_the_cause_is_the_one_that_the_text_shows(text: str, cause: Cause) -> None:
    assert explain(text).cause is cause


def test_a_gpu_that_ran_out_explains_the_timeouts_after_it() -> None:
    after = "[Rank 1] Watchdog caught collective operation timeout\nKilled"
    assert explain(f"{in_frames(new(), 'train', 'backward')}{after}").cause is Cause.TOO_LARGE


def test_the_innermost_telling_function_is_the_moment() -> None:
    assert moment_of(in_frames("E", "train", "evaluate", "forward")) is Moment.EVALUATING
    assert moment_of(in_frames("E", "main")) is Moment.UNKNOWN


@pytest.mark.parametrize(
    ("text", "step"),
    [("  1%| | 12/1200 [00:01", 12), ("step 2,048 loss 1.0", 2048), ("12%| | 1/8 [00:01", None), ("epoch: 1", None)],
)
def test_the_last_step_is_read_of_bars_and_logs(text: str, step: int | None) -> None:
    assert last_step(text) == step


def test_the_command_reads_a_file_and_standard_input(
    tmp_path: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"  # type: ignore[operator]
    log.write_text(new())
    assert main(["explain", str(log)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("A training step needs more memory than the device has.")
    assert "It asked for 2.0 GiB; 1.1 GiB of 23.7 GiB were free." in said
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Killed")))
    assert main(["explain", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cause"] == "cannot_tell"


def test_a_file_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "/nowhere"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_process_that_holds_far_more_than_the_tensors_is_another() -> None:
    text = new("Process 9 has 20.00 GiB memory in use. ", asked="300.00 MiB", free="60.00 MiB", allocated="2.00 MiB")
    text = text.replace("Including non-PyTorch memory, this process has 22.50 GiB memory in use. ", "")
    assert explain(text).cause is Cause.ANOTHER_PROCESS


def test_where_a_device_ran_out_for_an_unknown_reason_watch_is_what_helps() -> None:
    death = explain("RuntimeError: CUDA error: out of memory")
    assert "watch -- python train.py" in changes(death)[-1]
    assert "memory.events" in changes(explain("Killed"))[-1]
