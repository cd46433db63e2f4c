"""What a training loop keeps: a model's outputs, a decoder's cache, and the logits of the loss. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass

from .setting import training_setting

KEPT, RELEASED, RECOMPUTED = "kept", "released", "recomputed"
OUTPUTS = {
    KEPT: "kept until the next forward pass has returned (outputs = model(**batch))",
    RELEASED: "released once the loss is computed (Trainer, Lightning, torchtune)",
}
CHUNK_LOGITS = {
    KEPT: "kept for the backward pass (litgpt, torchtune)",
    RECOMPUTED: "recomputed in the backward pass, one chunk at a time",
}


@dataclass(frozen=True)
class LoopSettings:
    outputs: str = training_setting(
        "Outputs",
        "What the model returned is kept until the next forward pass has returned, or released once the loss is "
        "computed. A plain loop that names its outputs keeps them; Trainer and Lightning release them.",
        default=KEPT,
        hint="A loop that names its outputs keeps the old logits during the next forward pass.",
        choices=OUTPUTS,
    )
    without_cache: bool = training_setting(
        "No key-value cache",
        "Switch off the decoder's key-value cache, which training never reads. model.config.use_cache = False.",
        default=False,
        hint="For decoders of transformers, which fill the cache unless use_cache is False.",
    )
    loss_chunk_tokens: int | None = training_setting(
        "Loss in chunks of",
        "Compute output layer and loss in chunks of this many tokens of each sample. Left out: all at once.",
        hint="Tokens of each sample. For language models, whose logits are often the largest tensors. Empty: all.",
        bounds=(1, 1_000_000),
    )
    loss_chunk_logits: str = training_setting(
        "Logits of the chunks",
        "Keep the logits of all chunks for the backward pass, or compute each chunk's again in it.",
        default=KEPT,
        hint="Needs a loss in chunks.",
        choices=CHUNK_LOGITS,
    )
    half_precision_loss: bool = training_setting(
        "Loss in half precision",
        "Compute the loss of pure bf16 from bf16 logits. Left out: from fp32 copies of them, as in transformers.",
        default=False,
        hint="Only with pure bf16: autocast computes the loss in fp32.",
    )
    liger_loss: bool = training_setting(
        "Liger's fused loss",
        "Compute output layer and loss by Liger's fused linear cross-entropy. Its logits are never held all at once. "
        "Needs a CUDA GPU and the package liger-kernel.",
        default=False,
        hint="For language models. Needs a CUDA GPU and the package liger-kernel. Measured only, not estimated.",
    )

    @property
    def has_own_loss(self) -> bool:
        return self.loss_chunk_tokens is not None or self.half_precision_loss or self.liger_loss
