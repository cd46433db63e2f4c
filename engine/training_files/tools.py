"""PURE: the keys of each tool whose files are read, by what they mean, and what that tool does without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any


class Meaning(StrEnum):
    """What a key of a file says about a training. Tools have other names for it, and other values without it."""

    MODEL = "model"
    BATCH_SIZE = "batch size"
    ACCUMULATION = "accumulation"
    LENGTH = "length"
    OPTIMIZER = "optimizer"
    BF16 = "bf16"
    FP16 = "fp16"
    TF32 = "tf32"
    WEIGHTS_TYPE = "type of the weights"
    PURE_BF16 = "pure bf16"
    ADAPTER = "adapter"
    LORA_RANK = "LoRA rank"
    LORA_TARGETS = "LoRA targets"
    LORA_ALL = "LoRA on all linear layers"
    LORA_DROPOUT = "LoRA dropout"
    RSLORA = "RSLoRA"
    DORA = "DoRA"
    FOUR_BITS = "4 bits"
    EIGHT_BITS = "8 bits"
    BITS = "bits"
    FOUR_BIT_TYPE = "4-bit type"
    DOUBLE_QUANTIZATION = "double quantisation"
    CHECKPOINTING = "checkpointing"
    NO_CHECKPOINTING = "no checkpointing"
    ATTENTION = "attention"
    FLASH = "flash attention"
    PACKING = "packing"
    LIGER = "liger"
    COMPILE = "compile"
    OFFLOAD_ACTIVATIONS = "offload activations"
    FREED_GRADIENTS = "freed gradients"
    CLIP = "clip"
    SEVERAL_GPUS = "several GPUs"
    OBJECTIVE = "objective"
    QUANTIZER = "quantiser"
    UNESTIMATED = "changes the memory, and is not estimated"


M = Meaning


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `command` trains the file named behind it; a file of it has one of the keys `marks`.

    `without` is what it does where a key is left out. `harmless` are keys that change no memory of the training's
    steps, as in `_HARMLESS`. `library` is the profile of settings that no key names: what its loop keeps.
    """

    name: str
    command: str
    marks: Sequence[str]
    keys: Mapping[str, Meaning]
    without: Mapping[Meaning, Any]
    harmless: str
    library: Mapping[str, Any] = field(default_factory=dict)

    def is_harmless(self, key: str) -> bool:
        """Whether the key, or the one that holds it, changes no memory."""
        named = (key, key.partition(".")[0])
        return any(fnmatchcase(name, pattern) for pattern in self.harmless.split() for name in named)

    def key_of(self, meaning: Meaning) -> str:
        return next(key for key, each in self.keys.items() if each is meaning)


_TRAINER = {"outputs": "released", "without_cache": True}
_HARMLESS = """
wandb* mlflow* comet* swanlab* tensorboard* trackio* hub* report* push* plot* log* metric* run* save* resume*
auto_resume* output* overwrite* load_best* eval* evals* per_device_eval* val* early_stop* do_* num* seed* data_seed
max_steps* learning_rate lr* warmup* weight_decay adam* dataset* dataloader* preprocessing* split* shuffle*
group_by_length max_samples special_tokens* tokens* tokenizer* template chat_template* system trust* remove_unused*
include* model_type model_author model_name ignore_data_skip torch_empty_cache_steps strict debug ddp* local_rank
deepspeed_* nproc* nnodes node_rank master* machine_rank fsdp_config streaming enable_thinking lora_alpha
"""
"""Keys that change no memory of the training's steps, with a star for any letters."""
_LORA_OF_TRAINER = {
    "lora_dropout": M.LORA_DROPOUT,
    "use_rslora": M.RSLORA,
    "use_dora": M.DORA,
    "load_in_4bit": M.FOUR_BITS,
    "load_in_8bit": M.EIGHT_BITS,
}
_OF_TRAINER = {
    "per_device_train_batch_size": M.BATCH_SIZE,
    "gradient_accumulation_steps": M.ACCUMULATION,
    "optim": M.OPTIMIZER,
    "bf16": M.BF16,
    "fp16": M.FP16,
    "tf32": M.TF32,
    "gradient_checkpointing": M.CHECKPOINTING,
    "torch_compile": M.COMPILE,
    "max_grad_norm": M.CLIP,
    "deepspeed": M.SEVERAL_GPUS,
    "fsdp": M.SEVERAL_GPUS,
    "use_liger_kernel": M.LIGER,
    "attn_implementation": M.ATTENTION,
    "packing": M.PACKING,
    "dtype": M.WEIGHTS_TYPE,
    "torch_dtype": M.WEIGHTS_TYPE,
    "neftune_noise_alpha": M.UNESTIMATED,
    "optim_target_modules": M.UNESTIMATED,
}
_WITHOUT_OF_TRAINER = {M.BATCH_SIZE: 8, M.ACCUMULATION: 1, M.OPTIMIZER: "adamw_torch_fused", M.CLIP: 1.0}

AXOLOTL = Tool(
    "axolotl",
    "axolotl train",
    ("base_model",),
    {
        "base_model": M.MODEL,
        "micro_batch_size": M.BATCH_SIZE,
        "gradient_accumulation_steps": M.ACCUMULATION,
        "sequence_len": M.LENGTH,
        "optimizer": M.OPTIMIZER,
        "bf16": M.BF16,
        "bfloat16": M.BF16,
        "fp16": M.FP16,
        "float16": M.FP16,
        "tf32": M.TF32,
        "torch_dtype": M.WEIGHTS_TYPE,
        "adapter": M.ADAPTER,
        "lora_r": M.LORA_RANK,
        "lora_target_modules": M.LORA_TARGETS,
        "lora_target_linear": M.LORA_ALL,
        "lora_modules_to_save": M.UNESTIMATED,
        "peft_use_dora": M.DORA,
        "peft_use_rslora": M.RSLORA,
        **_LORA_OF_TRAINER,
        "gradient_checkpointing": M.CHECKPOINTING,
        "activation_offloading": M.OFFLOAD_ACTIVATIONS,
        "attn_implementation": M.ATTENTION,
        "flash_attention": M.FLASH,
        "sample_packing": M.PACKING,
        "liger_fused_linear_cross_entropy": M.LIGER,
        "cut_cross_entropy": M.LIGER,
        "torch_compile": M.COMPILE,
        "max_grad_norm": M.CLIP,
        "deepspeed": M.SEVERAL_GPUS,
        "fsdp": M.SEVERAL_GPUS,
        "fsdp_config": M.SEVERAL_GPUS,
        "rl": M.OBJECTIVE,
        "unfrozen_parameters": M.UNESTIMATED,
        **dict.fromkeys(
            ("sequence_parallel_degree", "context_parallel_size", "tensor_parallel_size", "dp_shard_size"),
            M.UNESTIMATED,
        ),
        **dict.fromkeys(("qat", "diffusion", "reward_model", "num_labels", "s2_attention"), M.UNESTIMATED),
    },
    {
        M.BATCH_SIZE: 1,
        M.ACCUMULATION: 1,
        M.OPTIMIZER: "adamw_torch_fused",
        M.CLIP: 1.0,
        M.LENGTH: 512,
        M.PURE_BF16: True,
    },
    _HARMLESS
    + """
    datasets* pretraining_dataset* test_datasets* gradient_checkpointing_kwargs* lora_mlp_kernel lora_qkv_kernel
    lora_o_kernel lora_model_dir lora_fan_in_fan_out lora_on_cpu loss_watchdog* plugins liger_rope liger_rms_norm
    liger_glu_activation liger_layer_norm pad_to_sequence_len train_on_inputs eot_tokens base_model_*
    is_*_derived_model curriculum_sampling sample_packing_* use_tensorboard gpu_memory_limit xformers_attention
    cosine_* flash_attn_* message_* field_* roles* fsdp_version hf_use_auth_token
    excess_length_strategy
    """,
    _TRAINER,
)
LLAMA_FACTORY = Tool(
    "LLaMA-Factory",
    "llamafactory-cli train",
    ("finetuning_type", "stage", "cutoff_len"),
    {
        "model_name_or_path": M.MODEL,
        **_OF_TRAINER,
        "cutoff_len": M.LENGTH,
        "finetuning_type": M.ADAPTER,
        "lora_rank": M.LORA_RANK,
        "lora_target": M.LORA_TARGETS,
        **_LORA_OF_TRAINER,
        "quantization_bit": M.BITS,
        "quantization_type": M.FOUR_BIT_TYPE,
        "quantization_method": M.QUANTIZER,
        "double_quantization": M.DOUBLE_QUANTIZATION,
        "disable_gradient_checkpointing": M.NO_CHECKPOINTING,
        "flash_attn": M.FLASH,
        "enable_liger_kernel": M.LIGER,
        "pure_bf16": M.PURE_BF16,
        "stage": M.OBJECTIVE,
        **dict.fromkeys(
            ("additional_target", "use_unsloth", "use_galore", "use_badam", "use_apollo", "mixture_of_depths"),
            M.UNESTIMATED,
        ),
        **dict.fromkeys(("use_llama_pro", "use_adam_mini", "use_muon", "pissa_init", "shift_attn"), M.UNESTIMATED),
    },
    {
        **_WITHOUT_OF_TRAINER,
        M.LENGTH: 2048,
        M.ADAPTER: "lora",
        M.LORA_RANK: 8,
        M.LORA_TARGETS: "all",
        M.CHECKPOINTING: True,
        M.FLASH: "auto",
    },
    _HARMLESS
    + """
    image_* video_* media_dir mask_history train_on_prompt loraplus_* pref_* neat_packing adapter_name_or_path
    use_fast_tokenizer buffer_size mix_strategy interleave_probs ray_* resources_per_worker* placement_strategy
    cache_dir hf_hub_token rope_scaling ignore_pad_token_for_loss average_tokens_across_devices tool_format
    default_system infer_*
    """,
    _TRAINER,
)
TRL = Tool(
    "TRL or transformers",
    "trl sft --config",
    ("per_device_train_batch_size", "dataset_name"),
    {
        "model_name_or_path": M.MODEL,
        **_OF_TRAINER,
        "max_length": M.LENGTH,
        "max_seq_length": M.LENGTH,
        "block_size": M.LENGTH,
        "use_peft": M.ADAPTER,
        "lora_r": M.LORA_RANK,
        "lora_target_modules": M.LORA_TARGETS,
        "lora_modules_to_save": M.UNESTIMATED,
        **_LORA_OF_TRAINER,
        "bnb_4bit_quant_type": M.FOUR_BIT_TYPE,
        "use_bnb_nested_quant": M.DOUBLE_QUANTIZATION,
        "activation_offloading": M.OFFLOAD_ACTIVATIONS,
    },
    {
        **_WITHOUT_OF_TRAINER,
        M.LENGTH: 1024,
        M.LORA_RANK: 16,
        M.LORA_TARGETS: "all-linear",
        M.LORA_DROPOUT: 0.05,
        M.BF16: True,
        M.CHECKPOINTING: True,
        M.DOUBLE_QUANTIZATION: False,
    },
    _HARMLESS
    + """
    lora_task_type packing_strategy padding_free pad_* eos_token assistant_only_loss completion_only_loss
    gradient_checkpointing_kwargs* model_revision truncation_mode ignore_bias_buffers config use_hub_kernels
    average_tokens_across_devices
    """,
    _TRAINER,
)
MS_SWIFT = Tool(
    "ms-swift",
    "swift sft --config",
    ("tuner_type", "train_type", "model_author"),
    {
        "model": M.MODEL,
        **_OF_TRAINER,
        "max_length": M.LENGTH,
        "tuner_type": M.ADAPTER,
        "train_type": M.ADAPTER,
        "lora_rank": M.LORA_RANK,
        "target_modules": M.LORA_TARGETS,
        **_LORA_OF_TRAINER,
        "quant_bits": M.BITS,
        "quant_method": M.QUANTIZER,
        "optimizer": M.OPTIMIZER,
        "bnb_4bit_quant_type": M.FOUR_BIT_TYPE,
        "bnb_4bit_use_double_quant": M.DOUBLE_QUANTIZATION,
        "attn_impl": M.ATTENTION,
        "rlhf_type": M.OBJECTIVE,
        "task_type": M.OBJECTIVE,
        **dict.fromkeys(
            ("modules_to_save", "sequence_parallel_size", "device_map", "use_galore", "lisa_activated_layers"),
            M.UNESTIMATED,
        ),
        "tuner_backend": M.UNESTIMATED,
    },
    {
        **_WITHOUT_OF_TRAINER,
        M.BATCH_SIZE: 1,
        M.ADAPTER: "lora",
        M.LORA_RANK: 8,
        M.LORA_TARGETS: "all-linear",
        M.LORA_DROPOUT: 0.05,
        M.BF16: True,
        M.CHECKPOINTING: True,
        M.PURE_BF16: True,
    },
    _HARMLESS
    + """
    freeze_* init_weights loss_type bnb_4bit_compute_dtype use_hf use_chat_template cached_dataset lazy_tokenize
    load_from_cache_file loss_scale columns agent_template padding_free add_version create_checkpoint_symlink
    use_logits_to_keep acc_strategy check_model gradient_checkpointing_*
    """,
    _TRAINER,
)
TORCHTUNE = Tool(
    "torchtune",
    "tune run YOUR_RECIPE --config",
    ("model._component_", "tokenizer._component_"),
    {
        "model._component_": M.MODEL,
        "batch_size": M.BATCH_SIZE,
        "gradient_accumulation_steps": M.ACCUMULATION,
        "tokenizer.max_seq_len": M.LENGTH,
        "optimizer._component_": M.OPTIMIZER,
        "dtype": M.WEIGHTS_TYPE,
        "model.lora_rank": M.LORA_RANK,
        "model.lora_attn_modules": M.LORA_TARGETS,
        "model.lora_dropout": M.LORA_DROPOUT,
        "model.use_dora": M.DORA,
        "enable_activation_checkpointing": M.CHECKPOINTING,
        "enable_activation_offloading": M.OFFLOAD_ACTIVATIONS,
        "optimizer_in_bwd": M.FREED_GRADIENTS,
        "compile": M.COMPILE,
        "clip_grad_norm": M.CLIP,
        "dataset.packed": M.PACKING,
        "fsdp_cpu_offload": M.SEVERAL_GPUS,
        "tensor_parallel_dim": M.SEVERAL_GPUS,
        "teacher_model": M.UNESTIMATED,
        "quantizer": M.UNESTIMATED,
    },
    {M.ACCUMULATION: 1, M.CHECKPOINTING: False, M.PURE_BF16: True, M.DOUBLE_QUANTIZATION: True},
    _HARMLESS
    + """
    model model.apply_lora_to_(?:mlp model.output) model.lora_alpha model.quantize_base optimizer optimizer.lr
    optimizer.weight_decay optimizer.fused optimizer.betas optimizer.eps loss* checkpointer* profiler* epochs device
    batch_size_val lr_scheduler* safetensors
    """,
    _TRAINER,
)
TOOLS = (AXOLOTL, TORCHTUNE, LLAMA_FACTORY, MS_SWIFT, TRL)
"""In the order in which a file is held against them: the last one's keys are in files of the others, too."""
