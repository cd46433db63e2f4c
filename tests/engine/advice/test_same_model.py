"""The code to paste trains what was measured: its adapters, its weights of 4 bits, its rows, and its loss in chunks."""

import copy
import json

import pytest
import torch

from engine.advice import snippets
from engine.measurement.torchvision_schemas import import_torchvision
from engine.measurement.workloads import build, build_model
from engine.settings.lora_options import FourBits
from engine.settings.spec import RunSpec
from tests.engine.advice.libraries import of_each_library, run
from tests.engine.advice.recipes import MICRO, STEPS, recipe

pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries, about each other

TOKENS, CPU = 8, torch.device("cpu")
IN_4_BITS = {"lora_rank": 2, "load_in_4bit": True}
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 200, "n_positions": 32, "bos_token_id": 0}


class Samples(torch.utils.data.Dataset):
    """As many samples as two optimizer steps take."""

    def __init__(self, **sample):
        self.sample = sample

    def __len__(self):
        return MICRO * STEPS * 2

    def __getitem__(self, index):
        return self.sample


TEXTS = Samples(input_ids=torch.arange(TOKENS), labels=torch.tensor(1))


def small_gpt2():
    import_torchvision()
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(**GPT2, eos_token_id=0))


def trained(code, tmp_path, monkeypatch, **yours):
    """Run the code as it stands with what is the reader's own, and return the model that it trained."""
    monkeypatch.chdir(tmp_path)
    return run(code, learning_rate=0.01, **yours)["model"]


def tensors_of(model):
    return {name: (p.dtype, p.numel(), p.requires_grad) for name, p in model.named_parameters()}


def dropouts_of(model):
    return {path: layer.p for path, layer in model.named_modules() if isinstance(layer, torch.nn.Dropout)}


def layers_in_4_bits(model):
    """Return how the weights of each quantised layer are stored, dequantised into what, and in what it computes."""
    layer_class = pytest.importorskip("bitsandbytes").nn.Linear4bit
    found = {}
    for path, layer in model.named_modules():
        if isinstance(layer, layer_class):
            state, name = layer.weight.quant_state, path.removeprefix("base_model.model.").removesuffix(".base_layer")
            found[name] = (state.quant_type, state.nested, state.blocksize, state.dtype, layer.compute_dtype)
    return found


@of_each_library
@pytest.mark.parametrize(
    "how",
    [
        {"precision": "bf16", "lora_variant": "dora"},
        {"precision": "bf16-pure", "four_bit_format": "fp4", "four_bit_compute": "fp32", "lora_weights": "bf16"},
    ],
)
def test_code_trains_adapters_of_the_same_weights_of_4_bits_as_were_measured(write, how, tmp_path, monkeypatch):
    settings = {**IN_4_BITS, **how, "gradient_checkpointing": True}
    measured = build(RunSpec("bert-tiny", device="cpu", **settings), CPU).model
    build_model(RunSpec("bert-tiny", device="cpu")).save_pretrained(tmp_path / "mine")
    code = write(recipe("bert-tiny", **settings)).text
    made = trained(code, tmp_path, monkeypatch, model_name=str(tmp_path / "mine"), num_labels=2, dataset=TEXTS)
    assert tensors_of(made) == tensors_of(measured)
    assert layers_in_4_bits(made) == layers_in_4_bits(measured) != {}
    assert any(weight.any() for name, weight in made.named_parameters() if "lora_B" in name)  # these begin as zeros


def test_code_trains_adapters_of_the_same_weights_of_8_bits_as_were_measured(tmp_path, monkeypatch):
    layer_class = pytest.importorskip("bitsandbytes").nn.Linear8bitLt
    settings = {"lora_rank": 2, "load_in_8bit": True}
    measured = build(RunSpec("bert-tiny", device="cpu", **settings), CPU).model
    build_model(RunSpec("bert-tiny", device="cpu")).save_pretrained(tmp_path / "mine")
    code = snippets.plain_torch(recipe("bert-tiny", **settings)).text
    made = trained(code, tmp_path, monkeypatch, model_name=str(tmp_path / "mine"), num_labels=2, dataset=TEXTS)
    assert tensors_of(made) == tensors_of(measured)
    for model in (made, measured):
        layers = [module for module in model.modules() if isinstance(module, layer_class)]
        assert {(layer.state.threshold, layer.state.has_fp16_weights) for layer in layers} == {(6.0, False)}


ADAPTERS = (
    {},
    {"lora_targets": "query-value", "lora_dropout": 0.1},
    {"lora_targets": "intermediate.dense,query", "lora_variant": "rslora"},
    {"lora_variant": "dora"},
    {"precision": "bf16-pure", "lora_weights": "bf16"},
)


@of_each_library
@pytest.mark.parametrize("adapters", ADAPTERS, ids=str)
def test_code_of_lora_learns_the_adapters_and_the_whole_head_that_were_measured(write, adapters, tmp_path, monkeypatch):
    spec = RunSpec("bert-tiny", device="cpu", lora_rank=2, **adapters)
    code = write(recipe("bert-tiny", lora_rank=2, **adapters)).text
    made, measured = (
        trained(code, tmp_path, monkeypatch, model=build_model(spec), dataset=TEXTS),
        build(spec, CPU).model,
    )
    assert tensors_of(made) == tensors_of(measured)
    assert dropouts_of(made) == dropouts_of(measured)


def test_code_of_a_language_model_leaves_the_layers_out_of_4_bits_that_were_measured_without(tmp_path, monkeypatch):
    pytest.importorskip("bitsandbytes")
    from engine.measurement.quantization import quantize

    measured = small_gpt2()
    measured.save_pretrained(tmp_path / "mine")
    quantize(measured, FourBits("nf4", True, "bfloat16", False), CPU, "load_in_4bit")
    samples = Samples(input_ids=torch.arange(TOKENS), labels=torch.arange(TOKENS))
    code = snippets.plain_torch(recipe("gpt2-lm", **IN_4_BITS)).text
    made = trained(code, tmp_path, monkeypatch, model_name=str(tmp_path / "mine"), dataset=samples)
    assert layers_in_4_bits(made) == layers_in_4_bits(measured) != {}


def test_code_puts_the_output_layer_into_4_bits_where_it_was_measured_so(tmp_path, monkeypatch):
    pytest.importorskip("bitsandbytes")
    config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 2, "vocab_size": 128, "max_position_embeddings": 64, "tie_word_embeddings": False}
    settings = {**IN_4_BITS, "four_bit_output_layer": True, "sequence_length": TOKENS}
    spec = {"config": json.dumps(config), "task": "text-generation", "device": "cpu"}
    build_model(RunSpec("config", **spec)).save_pretrained(tmp_path / "mine")
    samples = Samples(input_ids=torch.arange(TOKENS), labels=torch.arange(TOKENS))
    code = snippets.plain_torch(recipe("llama-3.1-8b", **settings)).text
    made = trained(code, tmp_path, monkeypatch, model_name=str(tmp_path / "mine"), dataset=samples)
    measured = build(RunSpec("config", **spec, **settings), CPU).model
    assert layers_in_4_bits(made) == layers_in_4_bits(measured)
    assert "lm_head" in layers_in_4_bits(made)


def test_on_several_devices_each_process_loads_its_weights_of_4_bits_onto_its_own(monkeypatch):
    planned = recipe("llama-3.1-8b", "cuda", devices=2, **IN_4_BITS)
    lines = snippets.trainer(planned).text.splitlines()
    (argument,) = (line for line in lines if "device_map=" in line)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert run("\n".join(["import os", "found = dict(", argument, ")"]))["found"] == {"device_map": "cuda:1"}
    assert "import os" in lines


def test_code_of_packed_rows_keeps_their_sequences_apart(tmp_path, monkeypatch):
    model = small_gpt2().eval()
    tokens = torch.arange(2 * TOKENS)
    with torch.no_grad():
        alone = torch.cat([model(input_ids=part[None]).logits[0] for part in tokens.split(TOKENS)])
    row = {"input_ids": tokens, "labels": tokens, "position_ids": torch.arange(2 * TOKENS) % TOKENS}
    seen = []
    model.register_forward_hook(lambda module, args, outputs: seen.append(outputs.logits[0].detach()))
    planned = recipe("gpt2-lm", mode="eval", sequences="packed", sequence_length=2 * TOKENS)
    trained(snippets.plain_torch(planned).text, tmp_path, monkeypatch, model=model, dataset=Samples(**row))
    torch.testing.assert_close(seen[0], alone)


@pytest.mark.parametrize(
    ("sequences", "named"), [("full", ()), ("padded", ("attention_mask",)), ("packed", ("position_ids",))]
)
def test_code_says_of_what_the_rows_were_that_were_measured(sequences, named):
    first, second, *_ = snippets.plain_torch(recipe("gpt2-lm", sequences=sequences)).text.splitlines()
    assert first.startswith("# yours: model, dataset")
    assert second.startswith("#") is bool(named)
    assert all(name in second for name in named)


TOKENS_OF_ROWS = 8
SIZES = {
    **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16},
    **{"num_key_value_heads": 1, "vocab_size": 60, "attention_dropout": 0.0},
}
CAPPED = {"model_type": "gemma2", **SIZES, "final_logit_softcapping": 0.5}
SCALED = {"model_type": "granite", **SIZES, "logits_scaling": 4.0}


def language_model(config):
    return {"model": "config", "config": json.dumps(config), "task": "text-generation"}


LANGUAGE_MODEL = language_model(CAPPED)


class Texts(torch.utils.data.Dataset):
    def __len__(self):
        return MICRO * STEPS * 2

    def __getitem__(self, index):
        tokens = torch.randint(0, 60, (TOKENS_OF_ROWS,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens.masked_fill(torch.arange(TOKENS_OF_ROWS) < 2, -100)}


def weights_after(code, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)  # of the order of the samples
    return run(code, model=copy.deepcopy(model), dataset=Texts(), learning_rate=0.5)["model"].state_dict()


@of_each_library
@pytest.mark.parametrize(("config", "logits"), [(CAPPED, "kept"), (CAPPED, "recomputed"), (SCALED, "kept")])
def test_code_of_a_loss_in_chunks_trains_the_weights_of_the_model_s_own_loss(
    write, config, logits, tmp_path, monkeypatch
):
    settings = {**language_model(config), "optimizer": "sgd"}
    model = build_model(RunSpec(**settings))
    own = weights_after(write(recipe(**settings)).text, model, tmp_path, monkeypatch)
    chunked = write(recipe(**settings, loss_chunk_tokens=3, loss_chunk_logits=logits)).text
    ours = weights_after(chunked, model, tmp_path, monkeypatch)
    assert any(not torch.equal(own[name], weight) for name, weight in model.state_dict().items())
    torch.testing.assert_close(ours, own, rtol=1e-4, atol=1e-5)


@of_each_library
def test_code_without_a_cache_switches_it_off_and_bf16_logits_are_not_converted(write):
    code = write(recipe(**LANGUAGE_MODEL, precision="bf16-pure", half_precision_loss=True, without_cache=True)).text
    assert "model.config.use_cache = False" in code
    assert ".float()" not in code


def test_code_without_a_cache_switches_off_that_of_a_decoder_with_a_config_of_its_own():
    import_torchvision()
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 8, "d_ff": 8, "d_kv": 4, "num_layers": 1, "num_heads": 2, "vocab_size": 16}
    model = T5ForConditionalGeneration(T5Config(**sizes, decoder_start_token_id=0, pad_token_id=0))
    text = torch.ones(1, 4, dtype=torch.int64)
    assert model(input_ids=text, labels=text).past_key_values is not None
    run("\n".join(recipe("t5-small", without_cache=True).model_lines()), model=model)
    assert model(input_ids=text, labels=text).past_key_values is None


def test_libraries_that_cannot_compute_the_loss_in_chunks_say_why():
    several = recipe(**LANGUAGE_MODEL, loss_chunk_tokens=3, devices=2)
    for write in (snippets.trainer, snippets.accelerate):
        refused = write(several)
        assert isinstance(refused, snippets.NoSnippet)
        assert "loss" in refused.reason
