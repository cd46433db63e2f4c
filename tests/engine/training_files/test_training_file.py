"""Files of other tools become the settings of a training: each key is read, harmless, unknown or not estimated."""

import json
from pathlib import Path

import pytest

from engine.errors import SpecError
from engine.training_files.training_file import read_training_file

AXOLOTL = """\
base_model: NousResearch/Llama-3.2-1B  # public copies have the same shapes
load_in_4bit: true
adapter: qlora
lora_r: 32
lora_dropout: 0.05
lora_target_linear: true
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
attn_implementation: flash_attention_2
learning_rate: 2e-4
wandb_project:
datasets:
  - path: somebody/some_texts
    type: alpaca
"""
LLAMA_FACTORY = """\
### model
model_name_or_path: Qwen/Qwen3-4B-Instruct-2507
stage: sft
finetuning_type: full
cutoff_len: 1024
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
bf16: true
deepspeed: examples/deepspeed/ds_z3_config.json
"""
TRL = {
    "model_name_or_path": "Qwen/Qwen2.5-0.5B",
    "dataset_name": "somebody/chats",
    "per_device_train_batch_size": 4,
    "max_length": 512,
    "use_peft": True,
    "lora_r": 8,
    "dtype": "bfloat16",
    "gradient_checkpointing": False,
}
SWIFT = """\
# 20 GiB
MODEL=Qwen/Qwen2.5-7B-Instruct
GPUS=2
CUDA_VISIBLE_DEVICES=0 \\
swift sft \\
    --model $MODEL \\
    --train_type lora \\
    --dataset 'a/b#500' \\
              'c/d#500' \\
    --max_length 2048 \\
    --per-device-train-batch-size=2 \\
    --lora_rank 8 \\
    --gradient_accumulation_steps $(expr 16 / $GPUS) \\
    --learning_rate 1e-4
echo done
"""
TORCHTUNE = """\
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 64
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 1024
optimizer:
  _component_: torch.optim.AdamW
  fused: True
batch_size: 4
dtype: bf16
enable_activation_checkpointing: False
"""


def read(tmp_path: Path, text: str, name: str = "train.yaml", **given: object):
    path = tmp_path / name
    path.write_text(text)
    return read_training_file(path, given)


@pytest.mark.parametrize(
    ("tool", "name", "text", "wanted"),
    [
        (
            "axolotl",
            "a.yml",
            AXOLOTL,
            {
                "model": "llama-3.2-1b",
                "sequence_length": 2048,
                "current_batch_size": 2,
                "accumulation_steps": 4,
                "precision": "bf16-pure",
                "optimizer": "adamw-8bit",
                "gradient_checkpointing": True,
                "lora_rank": 32,
                "lora_dropout": 0.05,
                "lora_weights": "fp32",
                "load_in_4bit": True,
                "four_bit_format": "nf4-dq",
                "sequences": "full",
            },
        ),
        (
            "LLaMA-Factory",
            "a.yaml",
            LLAMA_FACTORY,
            {
                "model": "qwen3-4b",
                "sequence_length": 1024,
                "precision": "bf16",
                "optimizer": "adamw-fused",
                "gradient_checkpointing": True,
                "lora_rank": None,
            },
        ),
        (
            "TRL or transformers",
            "a.json",
            json.dumps(TRL, indent=2),
            {
                "model": "qwen2.5-0.5b",
                "precision": "bf16-pure",
                "lora_rank": 8,
                "gradient_checkpointing": False,
                "outputs": "released",
            },
        ),
        (
            "ms-swift",
            "a.sh",
            SWIFT,
            {
                "model": "qwen2.5-7b",
                "sequence_length": 2048,
                "current_batch_size": 2,
                "accumulation_steps": 8,
                "precision": "bf16-pure",
                "lora_rank": 8,
                "gradient_checkpointing": True,
            },
        ),
        (
            "torchtune",
            "a.yaml",
            TORCHTUNE,
            {
                "model": "llama-3.2-1b",
                "precision": "bf16-pure",
                "optimizer": "adamw-fused",
                "lora_targets": "down_proj,gate_proj,o_proj,q_proj,up_proj,v_proj",
                "lora_weights": "bf16",
                "loss_chunk_tokens": 128,
                "gradient_checkpointing": False,
            },
        ),
    ],
)
def test_a_file_is_read_as_its_tool_would_train(tmp_path: Path, tool: str, name: str, text: str, wanted: dict) -> None:
    file = read(tmp_path, text, name)
    assert file.tool.name == tool
    assert {key: getattr(file.spec, key) for key in wanted} == wanted
    assert (file.unknown, file.not_estimated) == ([], [])


def test_every_key_is_accounted_for_with_its_line(tmp_path: Path) -> None:
    more = "lora_modules_to_save:\n  - embed_tokens\nmy_own_key: 1\nwandb_name: x\n"
    file = read(tmp_path, AXOLOTL + more)
    assert [(each.key, each.line) for each in file.not_estimated] == [("lora_modules_to_save", 22)]
    assert [(each.key, each.line) for each in file.unknown] == [("my_own_key", 24)]
    assert {"base_model", "optimizer"} <= {each.key for each in file.read}
    assert {"learning_rate", "wandb_name", "datasets"} <= {each.key for each in file.harmless}


def test_what_is_given_stands_over_the_file(tmp_path: Path) -> None:
    spec = read(tmp_path, AXOLOTL, current_batch_size=1, optimizer="sgd").spec
    assert (spec.current_batch_size, spec.optimizer) == (1, "sgd")


def test_several_gpus_and_what_a_trace_cannot_have_are_said(tmp_path: Path) -> None:
    text = LLAMA_FACTORY + "enable_liger_kernel: true\ntorch_compile: true\n"
    assumed = " ".join(read(tmp_path, text).assumed)
    for said in ("one GPU: deepspeed", "fused loss", "torch.compile left out", "as long as the longest"):
        assert said in assumed


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("stage: sft", "stage: dpo"), "line 3: stage: dpo holds more than one"),
        (("finetuning_type: full", "finetuning_type: oft"), "line 4: finetuning_type: 'oft' is not estimated"),
        (
            ("per_device_train_batch_size: 1", "per_device_train_batch_size: many"),
            "line 6: .*'many' is no whole number",
        ),
        (("Qwen/Qwen3-4B-Instruct-2507", "somebody/unheard-of-3b"), "line 2: .*somebody/unheard-of-3b.*--config"),
        (("cutoff_len: 1024", "cutoff_len: 1"), "line 5: cutoff_len: qwen3-4b takes 2 to"),
        (("bf16: true", "bf16: true\noptim: muon"), "line 9: optim: 'muon' is not estimated: one of adamw_torch"),
    ],
)
def test_what_is_not_estimated_is_refused_by_key_and_line(tmp_path: Path, changed: tuple[str, str], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read(tmp_path, LLAMA_FACTORY.replace(*changed))


BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no keys"),
        ("- a\n- b\n", "has no keys"),
        ("base_model: [unclosed\n", "line 2: this is no YAML"),
        ("services:\n  web:\n    image: nginx\n", "has no key of a training"),
        ("base_model: !!python/object/apply:os.system ['true']\n", "line 1: .*is not read here"),
        ("base_model: x\n" + BOMB, "too much is nested"),
        ("base_model: &a\n  b: *a\n", "too much is nested|no YAML"),
        ("a: " * 3_000 + "1", "no YAML"),
        ("base_model: meta-llama/Llama-3.2-1B\nmicro_batch_size: 0\n", "line 2: micro_batch_size: '0' is no whole"),
        ("#!/bin/sh\necho hello\n", "has no command with options"),
        ("model_name: x\nuse_gradient_checkpointing: unsloth\n", "is of Unsloth"),
        ("#!/bin/sh\nmegatron sft --model x --tensor_model_parallel_size 2\n", "is of Megatron"),
        ("x: " + "y" * 2**20, "has more than"),
        ("per_device_train_batch_size: 1\ncutoff_len: 5\n", "names no model"),
    ],
)
def test_what_is_no_file_of_a_training_gets_a_clear_error(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read(tmp_path, text)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        read_training_file(tmp_path / "no.yaml", {})
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00base_model")
    with pytest.raises(SpecError, match="no text in UTF-8"):
        read_training_file(tmp_path / "a.yaml", {})


def test_a_model_outside_the_catalogue_is_read_from_its_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 4096}
    text = LLAMA_FACTORY.replace("Qwen/Qwen3-4B-Instruct-2507", "somebody/small")
    (tmp_path / "somebody" / "small").mkdir(parents=True)
    (tmp_path / "somebody" / "small" / "config.json").write_text(json.dumps(config))
    beside = read(tmp_path, text).spec
    snapshot = tmp_path / "hub" / "models--somebody--cached" / "snapshots" / "1a2b"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    cached = read(tmp_path, text.replace("somebody/small", "somebody/cached")).spec
    assert beside.workload.id == cached.workload.id
    assert beside.task == "text-generation"
