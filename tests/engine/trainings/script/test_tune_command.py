"""Unmodified scripts are tuned: started, watched from inside, ended; nothing of them is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest.mock import ANY

import pytest

from engine.text.own_words import SAID
from tests.engine.questions.answers.answers import differing
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "scripts"
ROOT = Path(__file__).parents[4]
ONE_START = ("--max", "24", "--current-batch-size", "24")  # how a search goes on is test_most_starts's
AT_THE_MAXIMUM = {"largest_batch_size": 24, "certified": False, "refused_batch_size": None, "refusal": None}
AT_THE_MAXIMUM |= {"reason": "max_batch_size", "note": None, "allowed_sizes": None}
AT_THE_MAXIMUM |= {"is_of_earlier_run": False, "had_trained_earlier": False}
AT_THE_MAXIMUM |= {"soak_steps": ANY}  # how far quick steps are watched on is the machine's
TUNE = (sys.executable, "-m", "engine", "tune", "--device", "cpu", "--json", "--no-compare-speed")


def tuned(*arguments: str, status: int = 0, **environment: str) -> dict:
    done = subprocess.run(
        [*TUNE, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600, env=os.environ | environment
    )
    assert done.returncode == status, done.stderr[-3_000:]
    return json.loads(done.stdout)


def script(name: str, *arguments: str) -> tuple[str, ...]:
    return ("--", sys.executable, str(SCRIPTS / name), *arguments)


def peaks(result: dict) -> dict[int, int]:
    return {p["batch_size"]: p["peak_allocated_bytes"] for p in result["probes"] if p["peak_allocated_bytes"]}


def test_a_plain_script_gets_its_exact_largest_batch_size() -> None:
    result = tuned("--memory-limit", "24MiB", *script("plain.py", "--batch-size", "{batch_size}"))
    boundary, peak = result["boundary"], peaks(result)
    largest = boundary["largest_batch_size"]
    assert boundary["certified"]
    assert boundary["refused_batch_size"] == largest + 1
    assert peak[largest] <= 24 * 2**20 < peak[largest + 1]
    assert [p["batch_size"] for p in result["probes"]][2:4] == [largest, largest + 1]  # by the curves of two starts
    assert (result["spec"]["model"], result["environment"]["script"]) == ("plain.py", "plain.py")
    assert (result["recommended"], result["speed_rounds"]) == (None, [])
    assert result["largest_with_reserve"]["memory_bytes"] <= 0.95 * 24 * 2**20


def test_the_script_of_the_readme_is_tuned() -> None:
    assert tuned(*ONE_START, *script("ten_lines.py", "{batch_size}"))["boundary"] == AT_THE_MAXIMUM


def test_points_of_rays_in_an_object_of_the_script_are_tuned_as_rays() -> None:
    boundary = tuned(*ONE_START, *script("rays.py", "{batch_size}"))["boundary"]
    assert boundary == AT_THE_MAXIMUM | {"note": "each sample of the batch size is 8 rows of the model"}


def test_a_hard_coded_batch_size_is_set_and_the_accumulation_counted() -> None:
    result = tuned(*ONE_START, "--batch", "dataloader", *script("hard_coded.py"))
    assert (result["boundary"], result["training"]["micro_batches"]) == (AT_THE_MAXIMUM, 4)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.yaml", "train:\n  lr: 1e-3\n  batch_size: 24  # of one card\n  epochs: 99\n"),
        ("config.py", "lr = 1e-3\nconfig = dict(train=dict(lr=lr, batch_size=24, epochs=99))\n"),
    ],
)
def test_the_batch_size_of_a_config_file_is_set_in_a_copy(tmp_path: Path, name: str, text: str) -> None:
    path, key = tmp_path / name, "train.batch_size" if name.endswith("yaml") else "config.train.batch_size"
    path.write_text(text)
    command = script("reads_config.py", "--config", str(path))
    result = tuned("--max", "32", "--start", "32", "--batch-in", f"{path}:{key}", *command)
    assert (result["boundary"]["largest_batch_size"], result["spec"]["batch"]) == (32, "config")
    assert (result["spec"]["current_batch_size"], result["spec"]["batch_in"]) == (24, f"{path}:{key}")
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == (text, [name])
    assert differing(result) == []


def test_a_loader_in_the_one_line_draws_the_size_to_be_tried() -> None:
    result = tuned(*ONE_START, "--batch", "steps", *script("one_line.py"), PYTHONPATH=str(ROOT))
    assert (result["boundary"], result["spec"]["batch"]) == (AT_THE_MAXIMUM, "steps")


def test_a_function_of_a_module_is_tuned_by_its_name(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "module_with_step.py", tmp_path)
    result = tuned(*ONE_START, "--function", "module_with_step:make_step", PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (result["boundary"], result["spec"]["function"]) == (AT_THE_MAXIMUM, "module_with_step:make_step")
    warm = tuned(*ONE_START, "--warm", "--function", "module_with_step:make_step", PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert (warm["boundary"], warm["spec"]["starting"]) == (AT_THE_MAXIMUM, "warm")


def test_python_m_engine_in_another_folder_says_how_the_command_is_installed(tmp_path: Path) -> None:
    done = subprocess.run(
        [*TUNE, "--", "false", "{batch_size}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert f"`pip install -e {ROOT}` gives you the command `memorymark`" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--function", "a:b", "--", "python"), "function"),
        (("--function", "train.py"), "function"),
        (("--function", "a:b", "--batch", "env"), "batch"),
        (("--function", "a:b", "--whole-run"), "whole_run"),
        (("--function", "a:b", "--python", "/no/python"), "python"),
        (("--python", sys.executable, "--", "train", "{batch_size}"), "python"),
        (("--warm", "--", "train", "{batch_size}"), "warm"),
        (("--warm", "--function", "a:b", "--python", sys.executable), "warm"),
    ],
)
def test_what_does_not_belong_to_a_function_is_refused_by_its_name(arguments: tuple[str, ...], field: str) -> None:
    assert tuned(*arguments, status=2)["error"]["field"] == field


def test_a_gan_that_reads_the_environment_is_tuned() -> None:
    assert tuned(*ONE_START, "--batch", "env", *script("gan.py"))["boundary"] == AT_THE_MAXIMUM


def test_a_trainer_whose_script_imports_in_the_public_order_is_tuned() -> None:
    arguments = ("--output_dir", "{out}", "--use_cpu", "true", "--report_to", "none", "--disable_tqdm", "true")
    result = tuned(*ONE_START, "--batch", "hf", *script("public_trainer.py", *arguments))
    assert (result["boundary"], result["training"]["tokens_per_step"]) == (AT_THE_MAXIMUM, 16 * 24)


def test_every_rank_of_a_distributed_training_is_seen() -> None:
    torchrun = ("--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    result = tuned(*ONE_START, *torchrun, str(SCRIPTS / "ranks.py"), "--batch-size", "{batch_size}")
    assert result["boundary"] == AT_THE_MAXIMUM
    assert (result["training"]["ranks"], len(result["training"]["rank_peaks_bytes"])) == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (script("plain.py", "--ignore", "--batch-size", "{batch_size}"), "batch_size_ignored"),
        (script("plain.py", "--steps", "2", "--batch-size", "{batch_size}"), "ended_early"),
        (("--", sys.executable, "-I", str(SCRIPTS / "plain.py"), "--batch-size", "{batch_size}"), "hook_not_loaded"),
        (("--batch", "hf", *script("hard_coded.py")), "batch_size_not_set"),
        (("--batch", "steps", *script("hard_coded.py")), "batch_size_not_set"),
    ],
)
def test_a_command_that_proves_nothing_is_refused_with_the_reason(arguments: tuple[str, ...], code: str) -> None:
    error = tuned("--memory-limit", "24MiB", *arguments, status=9)["error"]
    assert (error["code"], error["exit_status"]) == (code, 9)


def test_a_script_that_ends_too_early_shows_its_lines_its_log_and_its_command(tmp_path: Path) -> None:
    command = script("plain.py", "--steps", "2", "--batch-size", "{batch_size}")
    error = tuned("--memory-limit", "24MiB", *command, status=9, XDG_CACHE_HOME=str(tmp_path))["error"]["message"]
    assert error.startswith("the training ended after 2 optimizer steps, before its memory was known; seen last: ")
    assert error.count("its last lines") == error.count("Its whole output: ") == 1
    assert error.endswith("plain.py --steps 2 --batch-size 16")


def test_a_data_set_that_is_too_small_ends_the_search_without_a_certificate() -> None:
    command = script("plain.py", "--samples", "100", "--batch-size", "{batch_size}")
    result = tuned("--memory-limit", "64MiB", *command)
    boundary = result["boundary"]
    assert (boundary["largest_batch_size"], boundary["certified"]) == (100, False)
    assert boundary["reason"] == "size_limit"
    assert "100 rows allow batches of up to 100" in boundary["refusal"]
    assert [p["batch_size"] for p in result["probes"] if p["purpose"] == "search"] == [16, 100, 101]


@pytest.mark.parametrize("kind", ["graphs", "pairs", "images"])
def test_rows_that_become_other_numbers_of_items_are_counted_by_the_loader(kind: str) -> None:
    command = script("collated.py", "--kind", kind, "--batch-size", "{batch_size}")
    result = tuned("--memory-limit", "2MiB", "--current-batch-size", "8", *command)
    boundary, used = result["boundary"], peaks(result)
    assert boundary["certified"]
    assert boundary["refused_batch_size"] == boundary["largest_batch_size"] + 1
    assert used[boundary["largest_batch_size"]] <= 2 * 2**20 < used[boundary["refused_batch_size"]]
    assert ("items large" in (boundary["note"] or "")) == (kind == "graphs")


def test_a_script_that_changes_its_weights_itself_is_tuned() -> None:
    command = script("by_hand.py", "--batch-size", "{batch_size}")
    result = tuned("--memory-limit", "8MiB", "--current-batch-size", "8", *command)
    boundary = result["boundary"]
    assert (boundary["certified"], boundary["soak_steps"] >= 5, result["training"]["micro_batches"]) == (True, True, 1)


def test_one_rank_that_runs_out_of_memory_refuses_the_size_and_none_is_left() -> None:
    torchrun = ("--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2")
    command = (*torchrun, str(SCRIPTS / "ranks.py"), "--rank-fails", "1", "--batch-size", "{batch_size}")
    boundary = tuned("--memory-limit", "2MiB", "--current-batch-size", "2", *command, status=3)["boundary"]
    assert (boundary["reason"], boundary["largest_batch_size"]) == ("does_not_fit", 0)
    assert not left_running("ranks.py")


@pytest.mark.parametrize(
    "arguments",
    [("plain.py", "--steps", "8"), ("by_hand.py",), ("compiled.py",), ("compiled.py", "--in-place")],
    ids=" ".join,
)
def test_losses_are_the_same_to_the_bit_with_and_without_the_watch(arguments: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPTS / arguments[0]), "--batch-size", "32", *arguments[1:]]
    alone = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    settings = {"folder": str(tmp_path), "batch": "template", "batch_size": 32, "limit_bytes": None}
    settings |= {"memory_steps": 5, "timed_steps": 2, "timed_seconds": 60}
    hook = {"PYTHONPATH": str(ROOT / "engine/trainings/script/hook"), "MEMORYMARK_HOOK": json.dumps(settings)}
    watched = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | hook).stdout
    assert watched.splitlines() == alone[: len(watched.splitlines())]
    assert len(watched.splitlines()) >= 6


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_the_search_is_ended_from_outside(signal_number: int) -> None:
    command = [*TUNE, *script("plain.py", "--hang-above", "1", "--batch-size", "{batch_size}")]
    # where pytest runs in the background, SIGINT is ignored, and a child would inherit that
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    search = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=heard)
    try:
        wait_until(lambda: bool(left_running("--hang-above")))
        search.send_signal(signal_number)
        search.wait(60)
        wait_until(lambda: not left_running("--hang-above"))
    finally:
        search.kill()
        search.wait()


def left_running(mark: str) -> list[int]:
    """Return the processes of a command that this test started, not those of the search itself.

    A test beside this one may run the same script, so a process counts by the test's name in its environment.
    """
    this_test = f"PYTEST_CURRENT_TEST={os.environ['PYTEST_CURRENT_TEST']}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes().decode(errors="replace")
            is_own = this_test in (folder / "environ").read_bytes().split(b"\0")
        except (OSError, ValueError):
            continue
        if is_own and mark in line and "{batch_size}" not in line and folder.name.isdigit():
            found.append(int(folder.name))
    return found


def test_starts_of_a_command_are_compared_in_turns_and_believed() -> None:
    compared = (*(part for part in TUNE if part != "--no-compare-speed"), "--max", "8", "--current-batch-size", "2")
    command = [*compared, *script("ten_lines.py", "{batch_size}")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1_200)
    assert done.returncode == 0, done.stderr[-3_000:]
    result = json.loads(done.stdout)
    compared = [{block["batch_size"] for block in each["blocks"]} for each in result["speed_rounds"]]
    assert compared == [{2, 8}] * len(compared)  # few on a busy machine
    searched = [p for p in result["probes"] if p["purpose"] != "timing"]
    again = len({2, 8})  # where the memory of many steps was read, each size is started once more for its blocks
    assert len(searched) <= len(result["training"]["starts"]) <= len(searched) + again
    if result["speed"]["claim"] == "nothing":  # as on a busy machine
        assert result["recommended"] is None
    else:
        assert result["recommended"]["batch_size"] in (2, 8)
    assert differing(result) == []


def test_a_script_that_fails_shows_its_lines_its_log_and_its_command(tmp_path) -> None:
    command = script("plain.py", "--fail-above", "1", "--batch-size", "{batch_size}")
    error = tuned("--memory-limit", "24MiB", *command, status=1, XDG_CACHE_HOME=str(tmp_path))["error"]["message"]
    first, *lines = error.splitlines()
    assert first.startswith(f"the training failed: ValueError, in {SAID}this script takes no such batch; its last")
    assert any("Traceback (most recent call last)" in line for line in lines)
    assert lines[-1].startswith("  To run it by hand: cd ")
    assert lines[-1].endswith("plain.py --fail-above 1 --batch-size 16")
    (log,) = (tmp_path / "memorymark").glob("*.log")
    assert f"Its whole output: {log}" in error
    assert (log.stat().st_mode & 0o777, "takes no such batch" in log.read_text()) == (0o600, True)


def test_a_script_that_wants_a_divisor_of_its_total_is_certified_among_the_sizes_that_it_takes() -> None:
    result = tuned("--memory-limit", "400KiB", *script("divides_its_total.py", "{batch_size}"))
    boundary = result["boundary"]
    assert (boundary["largest_batch_size"], boundary["refused_batch_size"], boundary["certified"]) == (128, 256, True)
    assert boundary["allowed_sizes"] == "powers of two"
    assert "ended with AssertionError" in boundary["note"]
