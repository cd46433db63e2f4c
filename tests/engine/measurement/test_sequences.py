"""How texts fill the rows of a language model's batch: full, padded and packed ones. Real models of two blocks."""

import json

import pytest
import torch

from engine.errors import SpecError
from engine.measurement.workloads import build
from engine.spec import RunSpec

CPU = torch.device("cpu")
GPT2 = {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 32}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": 50,
}


def built(config, sequences, **changes):
    of_training = {"device": "cpu", "mode": "eval", "sequence_length": 16, "sequences": sequences, **changes}
    return build(RunSpec("config", config=json.dumps(config), task="text-generation", **of_training), CPU)


def test_full_rows_have_neither_a_mask_nor_positions():
    assert built(LLAMA, "full").make_batch(3).keys() == {"input_ids", "labels"}


def test_padded_rows_are_as_long_as_their_longest_and_padding_is_not_learned():
    batch = built(LLAMA, "padded", sequence_length=15).make_batch(3)
    assert batch["attention_mask"].sum(dim=1).tolist() == [15, 8, 8]
    assert torch.equal(batch["labels"] == -100, batch["attention_mask"] == 0)


@pytest.mark.parametrize("config", [GPT2, LLAMA], ids=["gpt2", "llama"])
@pytest.mark.parametrize(("sequences", "sees_the_others"), [("packed", False), ("full", True)])
def test_packed_sequences_of_a_row_do_not_see_each_other(config, sequences, sees_the_others):
    one = built(config, sequences)
    batch = one.make_batch(2)
    if sequences == "packed":
        assert batch["position_ids"].tolist() == [[0, 1, 2, 3] * 4] * 2
    before = one.forward(batch).logits
    batch["input_ids"][:, :4] = (batch["input_ids"][:, :4] + 1) % 50
    after = one.forward(batch).logits
    assert not torch.equal(before[:, 3], after[:, 3])
    assert torch.equal(before[:, 4:], after[:, 4:]) is not sees_the_others


@pytest.mark.parametrize("model", ["bert", "t5-small", "resnet18"])
def test_only_language_models_have_rows_to_fill(model):
    with pytest.raises(SpecError, match=f"sequences: {model} is no language model"):
        RunSpec(model, sequences="packed")
