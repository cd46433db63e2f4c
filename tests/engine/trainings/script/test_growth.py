"""A training whose steps leave more and more behind gets no certificate: the largest size runs out of memory later."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.describe.boundary import certificate
from engine.describe.result import answer_of
from engine.facts.not_compared import NotCompared
from engine.facts.result import Boundary, Reason
from engine.questions.kinds import answered
from engine.text.units import format_bytes
from engine.trainings.script.judge.differences import UNKNOWN_PASS_STEPS, Observed
from engine.trainings.script.notes.memory import Memory
from engine.trainings.script.notes.whole_run import Unseen
from engine.trainings.script.result import Training
from engine.trainings.script.run import tune
from engine.trainings.script.spec import TuneSpec
from tests.engine.trainings.script.starts import document_of
from tests.engine.trainings.script.test_evidence import CARD, marks_of, reading, steps
from tests.engine.trainings.script.test_whole_run import SEEN

PEAK_BYTES = 100_000
CERTIFIED = Boundary(35, True, 36, Reason.OUT_OF_MEMORY, soak_steps=5)
KEEPS_ITS_LOSSES = """
import sys
import torch

model, losses = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.utils.data.TensorDataset(torch.randn(20_000, 64), torch.randint(8, (20_000,)))
for inputs, labels in torch.utils.data.DataLoader(rows, batch_size=int(sys.argv[1])):
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    losses.append(loss)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("growth_bytes", "pass_batches", "others", "grows"),
    [
        (100, 1_000, {}, True),
        (100, 10, {}, False),  # a pass is over before it is much
        (1, None, {}, False),  # losses, as numbers
        (2 * PEAK_BYTES // UNKNOWN_PASS_STEPS, None, {}, True),
        (100, 1_000, {"lengths": (20, 40)}, False),  # rows that are sorted by their length
    ],
)
def test_a_certificate_is_refused_where_much_is_left_behind_within_a_pass(
    growth_bytes: int, pass_batches: int | None, others: dict[str, tuple[int, int]], grows: bool
) -> None:
    observed, unseen = Observed(growth_bytes=growth_bytes, **others), Unseen(pass_batches=pass_batches)
    training = Training(1, 1, (PEAK_BYTES,), None, None, (), (), observed=observed, unseen=unseen)
    found = training.noted(CERTIFIED, 2 * PEAK_BYTES)
    assert (found.certified, found.reason) == (not grows, Reason.GROWS if grows else Reason.OUT_OF_MEMORY)


@pytest.mark.parametrize(("batches_left", "grows"), [(5, False), (600, True), (0, False)])
def test_a_certificate_is_refused_where_an_evaluation_does_not_fit_to_its_end(batches_left: int, grows: bool) -> None:
    memory = Memory(PEAK_BYTES, "evaluation", None, None, kept_by_evaluation_bytes=100, evaluated_bytes=PEAK_BYTES // 2)
    end_bytes = memory.evaluation_end_bytes(batches_left)
    observed = Observed(kept_by_evaluation_bytes=100, evaluation_end_bytes=end_bytes)
    training = Training(1, 1, (PEAK_BYTES,), None, None, (), (), whole_run=SEEN, observed=observed)
    for reason in (Reason.OUT_OF_MEMORY, Reason.SIZE_LIMIT):  # also where the data ended before the memory
        found = training.noted(replace(CERTIFIED, reason=reason), PEAK_BYTES)
        assert found.reason is (Reason.GROWS if grows else reason)
    at_end = f"if that goes on, it holds about {format_bytes(end_bytes)} at its end"
    assert (at_end in (found.note or "")) is (batches_left > 0)


def test_what_a_card_holds_after_each_step_shows_the_growth() -> None:
    marks = marks_of(steps(40))
    held = iter(range(0, 9_000, 512))
    for mark in marks:
        if mark[1] == "step":
            mark += [9_000, 9_216, next(held)]
    memory = reading([], marks=marks, card=CARD | {"peak_allocated_bytes": 9_216}, device="cuda:0").memory()
    assert memory is not None
    assert memory.growth_bytes == 512


@pytest.mark.slow
def test_a_script_that_keeps_its_losses_is_told_that_no_size_lasts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(KEEPS_ITS_LOSSES)
    command = (sys.executable, str(tmp_path / "train.py"), "{batch_size}")
    found = tune(TuneSpec(command, device="cpu", memory_limit_bytes=1 << 22))
    result = found.result
    assert (found.is_certified, result.boundary.reason, result.recommended) == (False, Reason.GROWS, None)
    assert result.speed is not None
    assert result.speed.why is NotCompared.GROWS
    assert answer_of(result).sentence.startswith("No batch size is sure to last: ")
    assert certificate(result).startswith("Not certified: ")
    elsewhere = answered(document_of(found))["boundary"]
    assert (elsewhere["certified"], elsewhere["reason"]) == (False, "grows")
