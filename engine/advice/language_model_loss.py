"""PURE: the code of a language model's loss that is not the model's own: in chunks of tokens, or in half precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ..catalog import Workload
from ..settings.loop_settings import RECOMPUTED


@dataclass(frozen=True, slots=True)
class LanguageModelLoss:
    """How the loss is computed. `chunk_tokens` None: all at once; `is_capped`: the model caps its logits."""

    chunk_tokens: int | None
    recomputes: bool
    is_half_precision: bool
    is_capped: bool
    is_fused: bool = False

    @classmethod
    def of(cls, spec: Mapping[str, Any], workload: Workload) -> Self | None:
        """Read a stored spec; None where the loss is the one that the model returns."""
        chunk_tokens, is_half_precision = spec.get("loss_chunk_tokens"), bool(spec.get("half_precision_loss"))
        is_fused = bool(spec.get("liger_loss"))
        if chunk_tokens is None and not is_half_precision and not is_fused:
            return None
        recomputes = spec.get("loss_chunk_logits") == RECOMPUTED
        is_capped = workload.model_class.startswith("Gemma2")
        return cls(chunk_tokens, recomputes, is_half_precision, is_capped, is_fused)

    def imports(self) -> list[str]:
        fused = ["from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss"] if self.is_fused else []
        return [*fused, *(["from torch.utils.checkpoint import checkpoint"] if self.recomputes else [])]

    def lines(self) -> list[str]:
        """Write `compute_loss(model, batch)`."""
        return [
            "def compute_loss(model, batch):",
            '    labels = torch.nn.functional.pad(batch["labels"], (0, 1), value=-100)[:, 1:]',
            '    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}',
            *self._lines_of_loss(),
            "",
        ]

    def _lines_of_loss(self) -> list[str]:
        if self.is_fused:
            return self._lines_fused()
        return self._lines_at_once() if self.chunk_tokens is None else self._lines_in_chunks()

    def _lines_fused(self) -> list[str]:
        cap = "softcap=model.config.final_logit_softcapping" if self.is_capped else ""
        return [
            "    hidden = model.get_decoder()(**inputs).last_hidden_state.flatten(0, 1)",
            "    output_layer = model.get_output_embeddings()",
            f"    loss = LigerFusedLinearCrossEntropyLoss({cap})",
            "    return loss(output_layer.weight, hidden, labels.flatten(), output_layer.bias)",
        ]

    def _lines_at_once(self) -> list[str]:
        return [
            "    logits = model(**inputs).logits",
            "    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())",
        ]

    def _lines_in_chunks(self) -> list[str]:
        upcast = "" if self.is_half_precision else ".float()"
        loss_of_chunk = "checkpoint(loss_of, *chunk, use_reentrant=False)" if self.recomputes else "loss_of(*chunk)"
        cap = ["        cap = model.config.final_logit_softcapping", "        logits = torch.tanh(logits / cap) * cap"]
        return [
            "    hidden = model.get_decoder()(**inputs).last_hidden_state",
            "",
            "    def loss_of(hidden, labels):",
            "        logits = model.get_output_embeddings()(hidden)",
            *(cap if self.is_capped else []),
            f"        logits = logits.flatten(0, 1){upcast}",
            '        return torch.nn.functional.cross_entropy(logits, labels.flatten(), reduction="sum")',
            "",
            f"    chunks = zip(hidden.split({self.chunk_tokens}, dim=1), labels.split({self.chunk_tokens}, dim=1))",
            f"    return sum({loss_of_chunk} for chunk in chunks) / (labels != -100).sum()",
        ]
