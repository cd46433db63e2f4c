"""What runs at the end of a short pass over the data counts before a size is certified."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import CommandUntunable
from engine.search.stillness import Watched
from engine.tune.pass_end import steps_of_a_pass
from engine.tune.run import tune
from engine.tune.spec import TuneSpec
from engine.tune.whole_run import Unseen
from tests.engine.tune.test_evidence import judged, reading, steps

EVALUATES = """
import sys
import torch
data = torch.utils.data.TensorDataset(torch.randn(6_000, 64))
loader = torch.utils.data.DataLoader(data, batch_size=int(sys.argv[1]), shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters())
for epoch in range(1_000):
    for (inputs,) in loader:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(20_000, 64))
    model.train()
"""


@pytest.mark.parametrize(
    ("batches", "watched", "step_seconds", "wanted"),
    [(31, 10, 0.1, 33), (31, 40, 0.1, None), (31, 10, 3.0, None), (500, 10, 0.01, None), (None, 10, 0.1, None)],
)
def test_a_pass_is_watched_where_its_end_is_near_and_was_not_seen(
    batches: int | None, watched: int, step_seconds: float, wanted: int | None
) -> None:
    seen = Watched(40, watched, step_seconds, is_varied=False, is_rising=False)
    evidence = replace(judged([reading(steps(40))]), unseen=Unseen(pass_batches=batches), watched=seen)
    assert steps_of_a_pass(evidence) == wanted


@pytest.mark.slow
def test_an_evaluation_at_the_end_of_a_pass_that_takes_more_is_told_in_place_of_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATES)
    command = (sys.executable, str(tmp_path / "train.py"), "{batch_size}")
    spec = TuneSpec(command, device="cpu", memory_limit_bytes=1 << 20, compare_speed=False)
    with pytest.raises(CommandUntunable, match="a pass over its data, with what the script does at its end, took"):
        tune(spec)
    roomy = tune(replace(spec, memory_limit_bytes=1 << 26, max_batch_size=256))
    assert roomy.largest_batch_size == 256
