"""A model of one's own config has the same advice as one of the catalogue: code, and gradients of a known size."""

from dataclasses import replace

import pytest
import torch

from engine.advice import snippets
from engine.advice.document import advise
from engine.advice.recipe import not_written
from engine.advice.stored import basis_of
from engine.measurement.workloads import build_model
from engine.spec import RunSpec
from tests.engine.advice.libraries import run
from tests.engine.advice.recipes import MICRO, STEPS, recipe
from tests.engine.catalog.hostile_configs import LLAMA
from tests.factories import make_result

OWN = {"model": "config", "config": LLAMA, "task": "text-generation"}


def basis(**settings):
    spec = RunSpec(**OWN, config_parameters=1_000_000, **settings)
    return basis_of(replace(make_result(), spec=spec).to_dict())


def test_code_is_written_for_every_library_or_its_absence_has_a_reason():
    advice = advise(basis(gradient_checkpointing=True))
    assert {each.id for each in advice.snippets} >= {"transformers", "accelerate", "lightning", "torch", "deepspeed"}
    assert len(advice.snippets) + len(advice.left_out) == 6
    assert advice.not_in_code == ()


def test_gradients_are_those_of_its_counted_parameters():
    assert basis().gradients_bytes == 4_000_000
    assert basis(precision="bf16-pure").gradients_bytes == 2_000_000
    uncounted = replace(basis(), spec={**basis().spec, "config_parameters": None})
    assert uncounted.gradients_bytes is None


def test_a_config_that_is_no_longer_offered_has_no_code_and_no_gradients():
    stale = replace(basis(), spec={**basis().spec, "config": '{"model_type":"no-longer-offered"}'})
    assert (advise(stale).snippets, stale.gradients_bytes) == ((), None)
    assert not_written(stale.spec) == ()


@pytest.mark.filterwarnings("ignore")  # of libraries, about each other
def test_code_trains_the_model_of_the_config():
    spec = RunSpec(**OWN, device="cpu")
    tokens = torch.arange(4)
    samples = [{"input_ids": tokens, "labels": tokens}] * (MICRO * STEPS)
    model = build_model(spec)
    before = model.lm_head.weight.clone()
    code = snippets.plain_torch(recipe(**OWN)).text
    run(code, model=model, dataset=samples, learning_rate=0.01)
    assert not torch.equal(model.lm_head.weight, before)
