"""What `tune --faster` sets from outside is in force in the script, and changes no more than it says."""

import json
import subprocess
import sys
import tempfile
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.trainings.script.notes.reading import Reading
from engine.trainings.script.spec import TuneSpec
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.launch import Watching, start

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "scripts"
ROOT = Path(__file__).parents[4]
VALUES: dict[str, Any] = {"workers": 2}


@cache
def started(name: str, *arguments: str, wanted: tuple[str, ...] = (), size: int = 16) -> Reading:
    """Start a script of this folder with some variants set."""
    spec = TuneSpec((sys.executable, str(SCRIPTS / name), *arguments, "{batch_size}"), device="cpu")
    to_set = {each: VALUES.get(each, True) for each in wanted}
    faster = {"seed": 0, "set": to_set, "is_trial": True, "environment": {"PYTHONHASHSEED": "0"}}
    watching = Watching(5, timed_steps=4, faster=faster)
    readings, ended = start(partial(begin_command, spec), size, watching, seconds=300)
    assert [each.data["ended"] for each in readings if each.has_trained] == ["done"], ended.last_output
    return next(each for each in readings if each.has_trained)


def noted(*arguments: str, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = started(*arguments, **options).data["faster"]
    return found


def peak(reading: Reading) -> int:
    memory = reading.memory()
    assert memory is not None
    return memory.peak_bytes


def test_what_only_moves_work_trains_the_same_to_the_bit() -> None:
    today, moved = noted("plain.py", "--batch-size"), noted("plain.py", "--batch-size", wanted=("foreach", "workers"))
    assert len(today["losses"]) >= 5
    assert moved["losses"] == today["losses"]
    assert moved["applied"] == ["foreach", "workers"]
    assert [each[:3] for each in moved["loaders"]] == [[2, False, False]]
    assert [each["is_foreach"] for each in moved["optimizers"]] == [True]


def test_a_fused_optimizer_and_bf16_are_in_force_and_differ_by_rounding_alone() -> None:
    today, other = noted("plain.py", "--batch-size"), noted("plain.py", "--batch-size", wanted=("bf16", "fused"))
    assert [each["is_fused"] for each in other["optimizers"]] == [True]
    assert other["applied"] == ["bf16", "fused"]
    assert other["losses"] != today["losses"]
    assert other["losses"][:5] == pytest.approx(today["losses"][:5], rel=0.02)


def test_a_compiled_module_is_seen_by_the_watch_as_before() -> None:
    today, compiled = started("plain.py", "--batch-size"), started("plain.py", "--batch-size", wanted=("compile",))
    assert compiled.data["faster"]["applied"] == ["compile"]
    assert compiled.data["faster"]["losses"][:5] == pytest.approx(today.data["faster"]["losses"][:5], rel=1e-3)
    assert [step.forwards for step in compiled.steps()] == [step.forwards for step in today.steps()]


def test_a_module_that_was_compiled_in_place_is_seen_and_set_from_outside() -> None:
    today = started("compiled.py", "--in-place", "--batch-size")
    other = noted("compiled.py", "--in-place", "--batch-size", wanted=("bf16",))
    assert [(each["name"], each["is_compiled"]) for each in today.data["faster"]["models"]] == [("Net", True)]
    assert [each.shape for step in today.steps()[:5] for each in step.forwards] == [(16,)] * 5
    assert other["applied"] == ["bf16"]
    assert other["losses"] != today.data["faster"]["losses"]


def test_a_step_of_several_micro_batches_has_one_loss_and_a_checkpoint_no_model_of_its_own() -> None:
    today, fused = noted("checkpointed.py"), noted("checkpointed.py", wanted=("fused", "workers"))
    steps = len(started("checkpointed.py").steps())
    assert 5 <= len(today["losses"]) <= steps + 1
    assert [each["name"] for each in today["models"]] == ["Model"]
    assert fused["applied"] == ["fused", "workers"]
    assert today["losses"][0] == fused["losses"][0]
    assert fused["losses"][4] == pytest.approx(today["losses"][4], rel=1e-3)


def test_a_model_that_was_traced_or_counted_before_it_trains_is_met_once() -> None:
    today, other = started("traced_first.py"), started("traced_first.py", wanted=("fused",))
    assert [(each["name"], each["device"]) for each in today.data["faster"]["models"]] == [("Sequential", "cpu")]
    assert today.data["device"] == "cpu"
    assert other.data["faster"]["losses"] == pytest.approx(today.data["faster"]["losses"], rel=1e-3)


def test_steps_that_a_scaler_leaves_out_count_alike_with_a_fused_optimizer() -> None:
    today, fused = noted("scaled.py"), noted("scaled.py", wanted=("fused",))
    assert today["losses"][0] != today["losses"][-1]
    assert fused["losses"][:5] == pytest.approx(today["losses"][:5], rel=1e-3)


def test_autocast_within_the_model_is_the_scripts_own() -> None:
    assert [each["is_autocast"] for each in noted("scaled.py")["models"]] == [True]
    assert [each["is_autocast"] for each in noted("traced_first.py")["models"]] == [False]


def test_an_option_is_set_of_an_optimizer_that_a_line_can_give_it_to() -> None:
    today, fused = noted("own_optimizer.py"), noted("own_optimizer.py", wanted=("fused",))
    assert [(each["name"], each["can_be_fused"]) for each in today["optimizers"]] == [("Mine", False)]
    assert fused["applied"] == []


def test_a_start_without_the_option_notes_and_sets_nothing() -> None:
    spec = TuneSpec((sys.executable, str(SCRIPTS / "plain.py"), "--batch-size", "{batch_size}"), device="cpu")
    readings, _ = start(partial(begin_command, spec), 16, Watching(3, timed_steps=1, timed_seconds=0.0), seconds=300)
    assert [each.data["faster"] for each in readings] == [None]


def test_outputs_that_are_held_are_counted_and_freed() -> None:
    today, released = started("keeps_outputs.py"), started("keeps_outputs.py", wanted=("release-outputs",))
    output_bytes = 16 * 4_096 * 4
    assert today.data["faster"]["kept_bytes"] == pytest.approx(4 * output_bytes)
    assert released.data["faster"]["applied"] == ["release-outputs"]
    assert peak(today) - peak(released) >= 3 * output_bytes
    assert released.data["faster"]["losses"] == today.data["faster"]["losses"]


def test_a_training_in_64_bits_goes_on_in_32_with_the_same_losses() -> None:
    today, other = started("in_64_bits.py"), started("in_64_bits.py", wanted=("fp32",))
    assert other.data["faster"]["applied"] == ["fp32"]
    assert other.data["faster"]["losses"] == pytest.approx(today.data["faster"]["losses"], rel=1e-5)
    assert peak(other) < 0.7 * peak(today)


def test_a_trainer_of_transformers_is_told_and_its_rows_are_seen_to_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found = noted("trainer.py", str(tmp_path), size=8)
    assert (found["framework"], found["draws_random"]) == ("transformers", True)
    assert [each["is_fused"] for each in found["optimizers"]] == [True]


def tuned(*arguments: str) -> tuple[str, dict[str, Any]]:
    """Run `tune --faster` on a script of this folder; what it printed, and its document."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        command = (sys.executable, "-m", "engine", "tune", "--faster", "--device", "cpu", "--result-file", str(file))
        done = subprocess.run(
            (*command, *arguments), cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        result: dict[str, Any] = json.loads(file.read_text())["result"]
        return done.stdout, result


def test_a_script_that_holds_its_outputs_is_told_so_and_nothing_is_written_beside_it() -> None:
    files = set(SCRIPTS.iterdir())
    said, result = tuned("--try", "release-outputs", "--", sys.executable, str(SCRIPTS / "keeps_outputs.py"), "64")
    assert "Outputs released after each step:" in said
    assert "Paste, for less memory:\n  del outputs" in said
    assert (result["goal"], result["today"]["batch_size"], result["chosen"]) == ("faster", 64, [])
    assert result["rows"][0]["numbers"]["sameness"] == "same_to_the_bit"
    assert set(SCRIPTS.iterdir()) == files


def test_a_script_that_waits_for_its_rows_is_told_so_first_and_workers_are_tried() -> None:
    script = (sys.executable, str(SCRIPTS / "slow_rows.py"), "{batch_size}")
    said, result = tuned("--try", "workers,fused", "--time-budget", "40", "--", *script)
    assert "Your data loader, not your computation, is the limit" in said
    assert result["today"]["waiting_fraction"] > 0.5
    assert result["rows"][0]["numbers"]["sameness"] == "same_to_the_bit"


@pytest.mark.nightly
def test_an_optimizer_over_thousands_of_small_tensors_is_much_faster_when_fused() -> None:
    today, fused = (step_seconds(started("many_tensors.py", wanted=wanted)) for wanted in ((), ("fused",)))
    assert fused < 0.8 * today


def step_seconds(reading: Reading) -> float:
    steps = reading.steps()
    return min(later.ended_at - earlier.ended_at for earlier, later in pairwise(steps) if earlier.is_timed)
