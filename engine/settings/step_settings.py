"""How a training step computes: precision, optimizer, kernels, and what is recomputed. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass

from .optimizers import OPTIMIZERS
from .setting import training_setting

PURE_BF16 = "bf16-pure"
PRECISIONS = {
    "fp32": "fp32",
    "tf32": "tf32 (matrix products in TensorFloat-32)",
    "bf16": "bf16 autocast",
    "fp16": "fp16 autocast with gradient scaling",
    PURE_BF16: "pure bf16 (weights, gradients and optimizer too)",
}
OPTIMIZER_LABELS = {name: optimizer.label for name, optimizer in OPTIMIZERS.items()}
FLASH = "flash_attention_2"
ATTENTIONS = {
    "auto": "the model's own choice",
    "eager": "eager (plain matrix products)",
    "sdpa": "sdpa (PyTorch's fused kernels)",
    FLASH: "FlashAttention 2 (package flash-attn)",
}
FULL, PADDED, PACKED = "full", "padded", "packed"
SEQUENCES = {
    FULL: "full (one in each row, of the whole length)",
    PADDED: "padded (one in each row, of unequal lengths, with an attention mask)",
    PACKED: "packed (several in each row, separated by their positions)",
}
HALF_PRECISIONS = ("bf16", "fp16", PURE_BF16)
ROUNDING_TOLERANCES = {"fp32": 0.001, "tf32": 0.01, "bf16": 0.02, "fp16": 0.01, PURE_BF16: 0.05}
"""By precision: the share by which its rounding may change a loss, or the length of all gradients together (2-norm)."""
BEFORE_FORWARD, BEFORE_BACKWARD, ZEROS = "before-forward", "before-backward", "zeros"
ZERO_GRADS = {
    BEFORE_FORWARD: "before the forward pass, set to None",
    BEFORE_BACKWARD: "before the backward pass, set to None (they are kept during the forward pass)",
    ZEROS: "set to zeros (set_to_none=False, never freed)",
}
FREED = "freed"
GRADIENTS = {
    "kept": "kept until the optimizer step",
    FREED: "freed during the backward pass, each after the step of its weight",
}
MODES = {"train": "train (dropout active)", "eval": "eval (dropout off)"}
AMPERE = (8, 0)
"""The first compute capability with TensorFloat-32, and with bfloat16 of its own: before it, torch emulates that."""
NEEDS_AMPERE, EMULATED_BEFORE_AMPERE = ("tf32",), ("bf16", PURE_BF16)


@dataclass(frozen=True)
class StepSettings:
    precision: str = training_setting(
        "Precision",
        "Precision of the forward and backward pass. Weights and optimizer state stay in fp32, except with bf16-pure.",
        default="fp32",
        hint="Half precision saves activations. Weights and optimizer state stay in fp32, except with pure bf16.",
        choices=PRECISIONS,
    )
    optimizer: str = training_setting(
        "Optimizer",
        "Optimizer of the training step. none runs forward and backward only.",
        default="adamw",
        hint="Adam and AdamW keep two copies of the weights more, Lion one, 8-bit AdamW half, SGD and Adafactor none.",
        choices=OPTIMIZER_LABELS,
    )
    accumulation_steps: int = training_setting(
        "Gradient accumulation",
        "Micro-batches per optimizer step. The batch size is that of one micro-batch; speeds count all of them.",
        default=1,
        hint="Micro-batches per optimizer step. The batch size is that of one of them.",
        bounds=(1, 1024),
    )
    clip_grad_norm: bool = training_setting(
        "Gradient clipping",
        "Clip the gradients by their total norm before each step. The limit changes neither memory nor speed.",
        default=False,
        hint="By the total norm (clip_grad_norm_). The limit itself changes neither memory nor speed.",
    )
    zero_grad: str = training_setting(
        "zero_grad",
        "Where the loop zeroes the gradients of the last step. before-backward keeps them during the forward pass.",
        default=BEFORE_FORWARD,
        hint="A loop that calls zero_grad() right before backward() holds them together with the activations.",
        choices=ZERO_GRADS,
    )
    gradients: str = training_setting(
        "Gradients",
        "Keep all gradients until the optimizer step, or free each during the backward pass. "
        "freed has one optimizer for each weight, called by register_post_accumulate_grad_hook.",
        default="kept",
        hint="Freed: no gradient clipping, accumulation or fp16.",
        choices=GRADIENTS,
    )
    ema: bool = training_setting(
        "EMA of the weights",
        "Keep an exponential moving average of the weights. It is updated after each optimizer step.",
        default=False,
        hint="Exponential moving average: one more copy of the trained weights, updated after each step.",
    )
    frozen_blocks: int | None = training_setting(
        "Frozen blocks",
        "Freeze the embeddings and this many first blocks. With all of them, only the head is trained. Left out: none.",
        hint="BERT has 12: with 6, the embeddings and 6 layers are frozen; with 12, all but the head. Empty: none.",
        bounds=(1, 1000),
    )
    attention: str = training_setting(
        "Attention",
        "Attention implementation of transformers. auto is sdpa where the model has it, else eager.",
        default="auto",
        hint="Eager stores the attention matrix. FlashAttention 2 needs a GPU, half precision and its package.",
        choices=ATTENTIONS,
    )
    gradient_checkpointing: bool = training_setting(
        "Gradient checkpointing",
        "Keep fewer activations; compute them again in the backward pass.",
        default=False,
        hint="Trades speed for memory.",
    )
    offload_activations: bool = training_setting(
        "Activation offload",
        "Keep what the forward pass saves in the host's memory until the backward pass. "
        "torch.autograd.graph.save_on_cpu; with gradient checkpointing only the inputs of the blocks are moved.",
        default=False,
        hint="CUDA and XPU only. Each step copies the activations to the host and back.",
    )
    offload_optimizer: bool = training_setting(
        "Optimizer state offload",
        "Keep the optimizer's state in the host's memory between the steps. "
        "One optimizer for each weight; its state is on the device while that weight is learned. "
        "For the optimizers of torch.optim with state.",
        default=False,
        hint="CUDA and XPU only. Each step copies the state from the host and back, weight by weight.",
    )
    torch_compile: bool = training_setting(
        "torch.compile",
        "Compile the model for each batch size. Each has its own process; compile time is in no step time.",
        default=False,
        hint="Measured only, not estimated. Every size is compiled again, so a run takes minutes longer.",
    )
    expandable_segments: bool = training_setting(
        "Expandable segments",
        "Let CUDA's allocator grow its segments. PYTORCH_ALLOC_CONF=expandable_segments:True.",
        default=False,
        hint="CUDA only. Leaves less memory reserved and unused; the step itself is the same.",
    )
    channels_last: bool = training_setting(
        "Channels last",
        "Store images and convolution weights with the channels last. memory_format=torch.channels_last.",
        default=False,
        hint="For convolutional networks: the layout that tensor cores take in half precision.",
    )
    mode: str = training_setting(
        "Mode",
        "Dropout on (train) or off (eval). Both run the backward pass.",
        default="train",
        hint="Dropout stores masks, so train takes more memory.",
        choices=MODES,
    )
    sequences: str = training_setting(
        "Sequences",
        "How texts fill the rows of a language model's batch. A sample is a row of the sequence length.",
        default=FULL,
        hint="For language models. Padded rows take as long as full ones; packed rows add a quadratic mask.",
        choices=SEQUENCES,
    )
    pretrained: bool = training_setting(
        "Pretrained weights",
        "Load the hub's weights in place of random ones. Memory and speed are the same, but they are downloaded.",
        default=False,
        is_in_form=False,
    )
