"""A config.json becomes a workload of its own, counted in a child, or is refused with the field and what is allowed."""

import json
import time
from typing import Any

import pytest

from engine.errors import SpecError
from engine.questions.validation.spec import ValidationSpec
from engine.settings.catalog.from_config import MODEL_TYPES, describe_count, read_config
from engine.settings.spec import RunSpec
from engine.trainings.catalogue import counted as module
from engine.trainings.catalogue.counted import counted
from tests.engine.settings.catalog.hostile_configs import LLAMA, ODD, REFUSED, VIT

GENERATION = "text-generation"


def spec(config: Any = LLAMA, task: str = GENERATION, **fields: Any) -> RunSpec:
    return RunSpec.from_dict({"config": config, "task": task, **fields})


def test_there_are_fifty_hostile_configs() -> None:
    assert len(REFUSED) == 50


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_config_is_refused_with_its_reason_and_at_once(name: str) -> None:
    text, reason = REFUSED[name]
    task = "image-classification" if '"vit"' in text else GENERATION
    started = time.process_time()
    with pytest.raises(SpecError) as refusal:
        RunSpec.from_dict({"config": text, "task": task}).workload  # noqa: B018 - sizes are read on access
    assert refusal.value.field == "config"
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 1_000
    assert time.process_time() - started < 5


@pytest.mark.parametrize("name", [name for name, (text, _) in REFUSED.items() if text.startswith("{")])
def test_the_same_as_an_object_is_refused_too(name: str) -> None:
    try:
        config = json.loads(REFUSED[name][0])
    except (ValueError, RecursionError):
        return  # no body of a request can hold it
    if name == "named twice":
        return  # as an object it has one value
    with pytest.raises(SpecError, match=r"^config: "):
        RunSpec.from_dict({"config": config, "task": "image-classification" if "vit" in str(config) else GENERATION})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"config": LLAMA}, "task"),
        ({"config": LLAMA, "task": "text-classification"}, "task"),
        ({"config": LLAMA, "task": "object-detection"}, "task"),
        ({"config": LLAMA, "task": 3}, "task"),
        ({"config": 3, "task": GENERATION}, "config"),
        ({"model": "config"}, "config"),
        ({"model": "bert", "config": LLAMA, "task": GENERATION}, "model"),
        ({"model": "bert", "task": GENERATION}, "task"),
        ({"model": "bert", "config_parameters": 5}, "config_parameters"),
        ({"config": LLAMA, "task": GENERATION, "pretrained": True}, "pretrained"),
        ({"config": LLAMA, "task": GENERATION, "sequence_length": 129}, "sequence_length"),
        ({"config": LLAMA, "task": GENERATION, "image_size": 224}, "image_size"),
        ({"config": LLAMA, "task": GENERATION, "config_parameters": 10**13}, "config_parameters"),
    ],
)
def test_a_wrong_field_given_with_a_config_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError) as refusal:
        RunSpec.from_dict(given)
    assert refusal.value.field == field


def test_equal_configs_agree_and_different_ones_are_distinguished() -> None:
    shuffled = json.dumps(dict(reversed(list({**LLAMA, "architectures": ["X"], "torch_dtype": "float16"}.items()))))
    assert spec().model == spec(shuffled).model == spec(json.dumps(LLAMA, indent=4)).model
    assert spec() == spec(shuffled)
    assert spec().model != spec({**LLAMA, "num_hidden_layers": 3}).model
    assert spec().model.startswith("config-")
    assert len(spec().model) <= 40


def test_a_stored_spec_is_read_back_and_is_the_same() -> None:
    stored = json.loads(json.dumps(spec(config_parameters=202_048).to_dict()))
    assert RunSpec.from_dict(stored) == spec(config_parameters=202_048)
    assert spec(config_parameters=202_048).workload.name.startswith("llama-like 0.202 M, config ")


def test_nothing_of_the_config_chooses_a_class_and_what_would_load_something_is_left_out() -> None:
    config = {**LLAMA, "architectures": ["os.system"], "_name_or_path": "/etc", "_attn_implementation": "own/kernel"}
    workload = spec({**config, "attn_implementation": "own/kernel", "use_pretrained_backbone": True}).workload
    assert (workload.library, workload.model_class, workload.config_class) == (
        *("transformers", "LlamaForCausalLM", "LlamaConfig"),
    )
    assert set(workload.config) == set(LLAMA) - {"model_type"}


def test_the_shape_of_a_sample_and_the_classes_are_the_config_s() -> None:
    assert (spec().input_size, spec().workload.input_sizes) == (128, (2, 128))
    roberta = {"model_type": "roberta", "vocab_size": 50_265, "max_position_embeddings": 514, "id2label": {"0": "a"}}
    workload = spec(roberta, "text-classification").workload
    assert (workload.input_sizes, workload.default_input_size, workload.label_count) == ((2, 512), 128, 1)
    assert spec(VIT, "image-classification").workload.input_sizes == (32, 32)
    assert spec(attention="eager").attention == spec(roberta, "text-classification", attention="eager").attention


def test_a_memory_limit_below_the_counted_weights_is_refused() -> None:
    assert spec(memory_limit_bytes="1MiB").fixed_bytes == 0  # not counted yet: nothing is held against it
    with pytest.raises(SpecError, match="memory_limit_bytes"):
        spec(memory_limit_bytes="1MiB", config_parameters=202_048)


def test_a_config_is_validated_like_a_model_of_the_catalogue() -> None:
    given = {"config": LLAMA, "task": GENERATION, "check": "compile"}
    assert ValidationSpec.from_dict(given).run_spec() == spec(current_batch_size=8)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_an_odd_config_is_read_as_data(text: str) -> None:
    assert read_config(text, GENERATION).id.startswith("config-")


def test_every_model_type_has_a_task_that_batches_are_made_for() -> None:
    from engine.settings.catalog import TASK_LABELS

    assert {each.task for each in MODEL_TYPES.values()} <= TASK_LABELS.keys()
    assert describe_count(1_235_814_400) == "1.24 B"


LLAMA_1B = {
    **{"model_type": "llama", "vocab_size": 128_256, "hidden_size": 2048, "intermediate_size": 8192, "head_dim": 64},
    **{"num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True},
    **{"max_position_embeddings": 131_072, "rms_norm_eps": 1e-05, "architectures": ["LlamaForCausalLM"]},
}


def spec_of_config(config: object = LLAMA) -> RunSpec:
    return RunSpec.from_dict({"config": config, "task": "text-generation"})


def test_a_model_of_the_catalogue_is_not_counted_again(monkeypatch):
    monkeypatch.setattr(module.subprocess, "run", None)
    assert counted(RunSpec("bert")) == RunSpec("bert")


def test_a_child_that_does_not_end_in_time_is_a_refusal(monkeypatch):
    monkeypatch.setattr(module, "COMMAND", ("sleep", "60"))
    with pytest.raises(SpecError, match="config: its model was not built within 0 s"):
        counted(spec_of_config(), seconds_max=0.2)


@pytest.mark.slow
def test_the_count_of_a_published_config_is_the_published_one():
    said: list[str] = []
    known = counted(spec_of_config(LLAMA_1B), said.append)
    assert known.config_parameters == 1_235_814_400
    assert known.workload.name.startswith("llama-like 1.24 B, config ")
    assert known.model == spec_of_config(LLAMA_1B).model
    assert "1,235,814,400 parameters" in said[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_an_odd_config_is_counted_or_refused_by_its_field(name):
    given = spec_of_config(json.loads(ODD[name]))
    try:
        number = counted(given, seconds_max=60).config_parameters
    except SpecError as error:
        number, refusal = None, error
    assert number or (refusal.field == "config" and len(str(refusal)) < 1_000)
