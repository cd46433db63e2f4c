"""PURE: the code of a language model's loss that is not the model's own: in chunks of tokens, or in half precision."""

from __future__ import annotations

from dataclasses import dataclass

from ..settings.loop_settings import RECOMPUTED, LoopSettings


@dataclass(frozen=True, slots=True)
class LanguageModelLoss:
    """How the loss is computed in place of the model's own. The model caps its logits, or divides them first."""

    settings: LoopSettings
    is_capped: bool
    is_scaled: bool

    @property
    def _recomputes(self) -> bool:
        return self.settings.loss_chunk_logits == RECOMPUTED

    def imports(self) -> list[str]:
        liger = ["from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss"]
        fused = liger if self.settings.liger_loss else []
        return [*fused, *(["from torch.utils.checkpoint import checkpoint"] if self._recomputes else [])]

    def lines(self) -> list[str]:
        how = self._lines_in_chunks if self.settings.loss_chunk_tokens is not None else self._lines_at_once
        return [
            "def compute_loss(model, batch):",
            '    labels = torch.nn.functional.pad(batch["labels"], (0, 1), value=-100)[:, 1:]',
            '    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}',
            *(self._lines_fused() if self.settings.liger_loss else how()),
            "",
        ]

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
        tokens = self.settings.loss_chunk_tokens
        upcast = "" if self.settings.half_precision_loss else ".float()"
        loss_of_chunk = "checkpoint(loss_of, *chunk, use_reentrant=False)" if self._recomputes else "loss_of(*chunk)"
        scale = ["        logits = logits / model.config.logits_scaling"]
        cap = ["        cap = model.config.final_logit_softcapping", "        logits = torch.tanh(logits / cap) * cap"]
        return [
            "    hidden = model.get_decoder()(**inputs).last_hidden_state",
            "",
            "    def loss_of(hidden, labels):",
            "        logits = model.get_output_embeddings()(hidden)",
            *(scale if self.is_scaled else []),
            *(cap if self.is_capped else []),
            f"        logits = logits.flatten(0, 1){upcast}",
            '        return torch.nn.functional.cross_entropy(logits, labels.flatten(), reduction="sum")',
            "",
            f"    chunks = zip(hidden.split({tokens}, dim=1), labels.split({tokens}, dim=1))",
            f"    return sum({loss_of_chunk} for chunk in chunks) / (labels != -100).sum()",
        ]
