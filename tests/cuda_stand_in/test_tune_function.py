"""A function of a program on a card: forks where the program has not asked for one, and a reason where it has."""

import json

import pytest

from engine.text.units import GIB
from tests.cuda_stand_in.cards import Cards

PROGRAM = """
import json, sys
import torch
from torch import nn
from engine.public import EngineError, tune

def make_step(size):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1_024, 1_024), nn.ReLU()) for _ in range(8)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    def step():
        optimizer.zero_grad()
        model(torch.empty(size, 256, 1_024, device="cuda")).sum().backward()
        optimizer.step()
    return step

exec(sys.argv[1])
try:
    found = tune(make_step, memory_limit="1GiB", current_batch_size=8, compare_speed=False, emit=id)
    print(json.dumps(found.to_dict()))
except EngineError as error:
    print(json.dumps(error.to_dict()))
"""


def tuned(cards: Cards, before: str) -> dict:
    cards.set(memory=4 * GIB)
    done = cards.python(PROGRAM, before)
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)


def test_a_function_of_a_program_gets_its_exact_size_on_a_card(cards: Cards) -> None:
    result = tuned(cards, "")
    boundary = result["boundary"]
    assert boundary["certified"]
    assert boundary["refused_batch_size"] == boundary["largest_batch_size"] + 1
    assert (result["device"]["kind"], result["spec"]["starting"]) == ("cuda", "fork")


BACKWARD = "nn.Linear(4, 4)(torch.ones(1, 4)).sum().backward()"


@pytest.mark.parametrize("before", ["torch.cuda.is_available()", "torch.ones(1, device='cuda')", BACKWARD])
def test_a_program_that_has_opened_the_driver_is_refused_before_a_fork_trains_on_the_cpu(
    cards: Cards, before: str
) -> None:
    error = tuned(cards, before)
    assert (error["code"], "the driver of CUDA" in error["message"]) == ("cannot_fork", True), error
