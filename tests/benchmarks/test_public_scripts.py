"""The list of public scripts is whole, its data can be made, and its meter agrees with the product's to the byte."""

import math
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from benchmarks import public_data
from benchmarks.alone_watched import COMPILED, cases
from benchmarks.public_start import (
    LEAST_STEPS,
    LOSS,
    METER,
    STEPS,
    Run,
    Script,
    losses_differ,
    metered,
    own_meter_bytes,
)
from benchmarks.tune_public import LIST, listed

TESTED = Path(__file__).resolve().parents[1] / "engine" / "trainings" / "script" / "scripts"
SCRIPTS = {script.name: script for script in listed()}


def test_each_repository_has_a_commit_and_a_licence() -> None:
    found = tomllib.loads(LIST.read_text())["repositories"]
    assert {script.repository for script in SCRIPTS.values()} == set(found)
    assert all(re.fullmatch(r"[0-9a-f]{40}", each["commit"]) and each["licence"] for each in found.values())


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_is_given_its_batch_size_and_data_and_a_refusal_has_its_reason(name: str) -> None:
    script = SCRIPTS[name]
    assert ("{batch_size}" in script.command) != (script.batch == "dataloader")
    assert all(hasattr(public_data, made.split()[0]) for made in script.data)
    assert (script.expected != "exact") == bool(script.refused_because)


def test_the_second_meter_knows_nothing_of_the_product() -> None:
    assert not re.search(r"import .*(engine|memorymark)|from engine", (METER / "sitecustomize.py").read_text())


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        ("Train Epoch: 1 [0/4000 (0%)]\tLoss: 2.300391", "2.300391"),
        ("step 0 | loss 3.3315 | step time 1214.32ms", "3.3315"),
        ("[D loss: 0.693] [G loss: -0.710]", "0.693"),
        ("| epoch   1 | ms/batch 12.31 | loss  5.42 | ppl   225", "5.42"),
    ],
)
def test_losses_are_found_in_what_scripts_print(line: str, loss: str) -> None:
    assert LOSS.findall(line)[0] == loss


def test_losses_are_compared_to_the_last_bit_in_each_process_and_as_far_as_both_came() -> None:
    one = Run({0: [(2.0).hex(), (1.0).hex(), (0.5).hex()], 1: [(3.0).hex()]}, [], 0)
    assert losses_differ(one, Run({0: [(2.0).hex(), (1.0).hex()]}, [], None)) == (2, 0.0)
    assert losses_differ(one, Run({0: [(2.0).hex(), (0.75).hex()], 1: [(3.0).hex()]}, [], 0)) == (3, 0.25)
    assert losses_differ(one, Run({0: [(2.0).hex(), "nan"]}, [], 0))[1] == math.inf
    assert losses_differ(Run({0: ["nan"]}, [], 0), Run({0: ["nan"]}, [], 0)) == (1, 0.0)
    assert losses_differ(one, Run({}, [], 0)) == (0, None)


def test_a_compiled_case_differs_from_the_script_of_the_list() -> None:
    found = cases()
    assert all(found[name].command != found[f"{name}_compiled"].command for name in COMPILED)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="the second meter is compiled")
@pytest.mark.parametrize(
    "script",
    ["ten_lines.py {batch_size}", "by_hand.py --batch-size {batch_size}", "plain.py --batch-size {batch_size}"],
)
def test_both_meters_count_the_same_bytes(script: str, tmp_path: Path) -> None:
    command = f"python {TESTED}/{script}"
    own = Script("own", "", command, 64)
    peak_bytes, steps = metered(own, tmp_path, 40)
    assert LEAST_STEPS < steps <= STEPS
    assert peak_bytes == own_meter_bytes(own, tmp_path, 40)
