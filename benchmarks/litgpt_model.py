"""The layers of litgpt's LoRA, which its published memory was measured with: its own models, not transformers'.

Written after litgpt/model.py, litgpt/lora.py and litgpt/finetune/lora.py (Apache 2.0) at commits 8641822 (October 2023)
and 5895df10 (April 2024), operation by operation as far as memory goes: one layer makes query, key and value, of which
a part is a view that keeps the whole; every model has an output layer of its own; every linear layer may be in 4 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.estimate.tracing.trace import MakeStep
from engine.measurement.optimizers import optimizer_class
from engine.measurement.step import TrainingStep
from engine.measurement.workloads import Built
from engine.settings.lora_options import FourBits
from engine.settings.spec import RunSpec
from engine.settings.step_settings import PURE_BF16

_PARALLEL, _WITH_LAYER_NORM = ("phi", "falcon", "gpt_neox"), ("phi", "falcon", "gpt_neox")
_GATED = ("llama", "mistral", "gemma", "gemma2", "phi3")
_ADAPTED = {
    "query": ("q_proj", "qkv_proj", "query_key_value"),
    "key": ("k_proj", "qkv_proj"),
    "value": ("v_proj", "qkv_proj", "query_key_value"),
    "projection": ("o_proj", "dense"),
    "mlp": ("down_proj", "fc2"),
    "head": ("lm_head",),
}
"""litgpt's switches, by the names that the same layers have in transformers."""
_ROWS = 128


@dataclass(frozen=True)
class Shape:
    """A model of litgpt, and which of its layers have adapters."""

    kind: str
    year: int
    width: int
    heads: int
    groups: int
    head_width: int
    hidden: int
    layers: int
    vocabulary: int
    rotary: int
    gelu: str
    rank: int
    dropout: float
    adapted: frozenset[str]

    @classmethod
    def of(cls, config: dict[str, Any], spec: RunSpec, year: int) -> Shape:
        """Read the shape of a config of transformers, and the adapters of the training."""
        kind, width, heads = config["model_type"], config["hidden_size"], config["num_attention_heads"]
        head_width = config.get("head_dim", width // heads)
        targets = set(spec.lora_targets.split(","))
        return cls(
            kind=kind,
            year=year,
            width=width,
            heads=heads,
            groups=1 if config.get("multi_query") else config.get("num_key_value_heads", heads),
            head_width=head_width,
            hidden=config.get("intermediate_size", 4 * width),
            layers=config["num_hidden_layers"],
            vocabulary=config["vocab_size"],
            rotary=int(head_width * config.get("partial_rotary_factor", config.get("rotary_pct", 1.0))),
            gelu="tanh" if "tanh" in config.get("hidden_act", "") or kind == "gemma2" else "none",
            rank=spec.lora_rank or 0,
            dropout=spec.lora_dropout,
            adapted=frozenset(name for name, names in _ADAPTED.items() if targets & {*names}),
        )

    @property
    def norm(self) -> nn.Module:
        return nn.LayerNorm(self.width) if self.kind in _WITH_LAYER_NORM else RmsNorm(self)

    @property
    def has_bias(self) -> bool:
        return self.kind in ("phi", "gpt_neox")


class RmsNorm(nn.Module):
    """litgpt's RMSNorm: of 2023 in the model's own type, of 2024 in fp32."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape.width))
        self.in_fp32, self.adds_one = shape.year > 2023, shape.kind in ("gemma", "gemma2")

    def forward(self, entered: Tensor) -> Tensor:
        values = entered.float() if self.in_fp32 else entered
        mean = torch.mean(values * values, dim=-1, keepdim=True)
        normed = (values * torch.rsqrt(mean + 1e-5)).to(entered.dtype)
        return normed * (1 + self.weight if self.adds_one else self.weight)


class Adapted(nn.Module):
    """A linear layer, with an adapter if it is among the adapted ones."""

    def __init__(self, shape: Shape, name: str, entering: int, leaving: int, *, bias: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(entering, leaving, bias=bias)
        self.rank = shape.rank if name in shape.adapted else 0
        if self.rank:
            self.lora_dropout = nn.Dropout(shape.dropout)
            self.lora_A = nn.Parameter(torch.zeros(self.rank, entering))
            self.lora_B = nn.Parameter(torch.zeros(leaving, self.rank))

    def forward(self, entered: Tensor) -> Tensor:
        result: Tensor = self.linear(entered)
        if not self.rank:
            return result
        adapted: Tensor = (self.lora_dropout(entered) @ self.lora_A.T @ self.lora_B.T) * 1.0
        return result + adapted


class AdaptedQueryKeyValue(nn.Module):
    """The layer that makes query, key and value at once, with one adapter for those of them that are adapted."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        leaving = (shape.heads + 2 * shape.groups) * shape.head_width
        self.linear = nn.Linear(shape.width, leaving, bias=shape.has_bias)
        sizes = {"query": shape.heads, "key": shape.groups, "value": shape.groups}
        self.sizes = [count * shape.head_width for name, count in sizes.items() if name in shape.adapted]
        self.is_grouped = shape.heads != shape.groups
        if self.sizes:
            self.lora_dropout = nn.Dropout(shape.dropout)
            self.lora_A = nn.Parameter(torch.zeros(shape.rank * len(self.sizes), shape.width))
            self.lora_B = nn.Parameter(torch.zeros(sum(self.sizes), shape.rank))

    def forward(self, entered: Tensor) -> Tensor:
        result: Tensor = self.linear(entered)
        if not self.sizes:
            return result
        inner = functional.linear(self.lora_dropout(entered), self.lora_A).transpose(-2, -1)
        adapted = self._convolved(inner, self.lora_B.unsqueeze(-1)).transpose(-2, -1)
        return result + self._padded(adapted) * 1.0

    def _convolved(self, inner: Tensor, weight: Tensor) -> Tensor:
        if not self.is_grouped:
            return functional.conv1d(inner, weight, groups=len(self.sizes))
        parts = zip(inner.chunk(len(self.sizes), dim=1), weight.split(self.sizes), strict=True)
        return torch.cat([functional.conv1d(part, its_weight) for part, its_weight in parts], dim=1)

    def _padded(self, adapted: Tensor) -> Tensor:
        """Return it with zeros for those that have no adapter."""
        leaving = self.linear.out_features
        if sum(self.sizes) == leaving:
            return adapted
        turned = adapted.transpose(0, 1)
        zeros = turned.new_zeros((*turned.shape[:-1], leaving)).view(-1, leaving)
        places = torch.arange(sum(self.sizes), device=adapted.device)
        filled = zeros.index_copy(1, places, turned.reshape(-1, sum(self.sizes)))
        return filled.view((*turned.shape[:-1], leaving)).transpose(0, 1)


class Attention(nn.Module):
    """litgpt's attention: query, key and value in one tensor, key and value repeated for all heads of their group."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.attn = AdaptedQueryKeyValue(shape)
        self.proj = Adapted(shape, "projection", shape.heads * shape.head_width, shape.width, bias=shape.has_bias)

    def forward(self, entered: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        shape, (samples, tokens, _) = self.shape, entered.shape
        of_group, width = shape.heads // shape.groups, shape.head_width
        whole = self.attn(entered).view(samples, tokens, shape.groups, of_group + 2, width).permute(0, 2, 3, 1, 4)
        query, *others = whole.split((of_group, 1, 1), dim=2)
        repeated = [each.expand(-1, -1, of_group, -1, -1) if shape.groups != shape.heads else each for each in others]
        query, key, value = (each.reshape(samples, -1, tokens, width) for each in (query, *repeated))
        query, key = (self._turned(each, cos, sin) for each in (query, key))
        if shape.kind == "gemma2":
            attended = self._capped(query, key, value)
        else:
            attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: Tensor = self.proj(attended.transpose(1, 2).reshape(samples, tokens, shape.heads * width))
        return result

    def _turned(self, values: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        turning = values[..., : self.shape.rotary]
        half = turning.size(-1) // 2
        rotated = torch.cat((-turning[..., half:], turning[..., :half]), dim=-1)
        turned = ((turning * cos) + (rotated * sin)).to(values.dtype)
        return torch.cat((turned, values[..., self.shape.rotary :]), dim=-1)

    @staticmethod
    def _capped(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.mT * (1 / math.sqrt(query.size(-1)))
        scores = torch.tanh(scores / 50) * 50
        mask = torch.ones(query.size(2), query.size(2), dtype=query.dtype, device=query.device).triu(diagonal=1)
        scores = scores + mask
        return functional.softmax(scores, dim=-1, dtype=torch.float).to(query.dtype) @ value


class Mlp(nn.Module):
    """The layers after the attention, with a gate in the models of Llama's kind."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.fc_1 = Adapted(shape, "mlp", shape.width, shape.hidden, bias=shape.has_bias)
        if shape.kind in _GATED:
            self.fc_2 = Adapted(shape, "mlp", shape.width, shape.hidden, bias=shape.has_bias)
        self.proj = Adapted(shape, "mlp", shape.hidden, shape.width, bias=shape.has_bias)

    def forward(self, entered: Tensor) -> Tensor:
        kind, first = self.shape.kind, self.fc_1(entered)
        if kind not in _GATED:
            return self.proj(functional.gelu(first, approximate=self.shape.gelu))  # type: ignore[no-any-return]
        second = self.fc_2(entered)
        gate = functional.gelu(first, approximate="tanh") if kind.startswith("gemma") else functional.silu(first)
        return self.proj(gate * second)  # type: ignore[no-any-return]


class Block(nn.Module):
    """One layer of the stack: attention and MLP one after the other, or side by side."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        has_post_norms, shares_norm = shape.kind == "gemma2", shape.kind in ("phi", "falcon")
        self.is_parallel = shape.kind in _PARALLEL
        self.norm_1, self.attn, self.mlp = shape.norm, Attention(shape), Mlp(shape)
        self.norm_2 = None if shares_norm else shape.norm
        self.post_attention_norm = shape.norm if has_post_norms else nn.Identity()
        self.post_mlp_norm = shape.norm if has_post_norms else nn.Identity()

    def forward(self, entered: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        normed = self.norm_1(entered)
        attended: Tensor = self.post_attention_norm(self.attn(normed, cos, sin))
        if self.is_parallel:
            beside = normed if self.norm_2 is None else self.norm_2(entered)
            return self.mlp(beside) + attended + entered  # type: ignore[no-any-return]
        attended = attended + entered
        after = normed if self.norm_2 is None else self.norm_2(attended)
        return self.post_mlp_norm(self.mlp(after)) + attended  # type: ignore[no-any-return]


class Gpt(nn.Module):
    """The whole model, whose output layer runs on chunks of tokens."""

    def __init__(self, shape: Shape, tokens: int, chunk_tokens: int) -> None:
        super().__init__()
        self.shape, self.chunk_tokens = shape, chunk_tokens
        self.lm_head = Adapted(shape, "head", shape.width, shape.vocabulary, bias=shape.kind == "phi")
        self.wte = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.ln_f = shape.norm
        dtype = torch.float16 if shape.year == 2023 and torch.get_default_dtype() == torch.bfloat16 else torch.float32
        for name in ("cos", "sin"):
            self.register_buffer(name, torch.zeros(tokens, shape.rotary, dtype=dtype), persistent=False)

    def forward(self, tokens: Tensor) -> list[Tensor]:
        hidden = self.wte(tokens)
        if self.shape.kind.startswith("gemma"):
            hidden = hidden * self.shape.width**0.5
        for block in self.blocks:
            hidden = block(hidden, self.cos, self.sin)
        return [self.lm_head(chunk) for chunk in self.ln_f(hidden).split(self.chunk_tokens, dim=1)]


def _loss(logits: Sequence[Tensor], targets: Tensor) -> Tensor:
    """Return litgpt's `chunked_cross_entropy`: where all logits are in one tensor, of 128 rows at a time."""
    if len(logits) == 1:
        flat = logits[0].reshape(-1, logits[0].size(-1))
        parts = zip(flat.split(_ROWS), targets.reshape(-1).split(_ROWS), strict=True)
    else:
        parts = zip(logits, targets.split(logits[0].size(1), dim=1), strict=True)
    each = [functional.cross_entropy(a.reshape(-1, a.size(-1)), b.reshape(-1), reduction="none") for a, b in parts]
    return torch.cat(each).mean()


def step_maker(spec: RunSpec, config: dict[str, Any], year: int) -> MakeStep:
    """Return a function that makes the training step of litgpt's LoRA with its own model of that config."""
    optimizer_class(spec.optimizer)  # a library imported during a trace would get fake tensors as constants
    shape, tokens = Shape.of(config, spec, year), spec.sequence_length or spec.input_size

    def make(device: torch.device) -> TrainingStep:
        model = _model(spec, shape, tokens, device)

        def make_batch(samples: int) -> dict[str, Tensor]:
            rows = torch.zeros((samples, tokens), dtype=torch.int64, device=device)
            return {"input_ids": rows, "labels": rows.clone()}

        def forward(batch: dict[str, Tensor]) -> list[Tensor]:
            logits = [chunk.float() for chunk in model(batch["input_ids"])]  # Lightning converts what a model returns
            return [*logits[:-1], logits[-1][..., :-1, :]]

        return TrainingStep(
            spec, Built(model, make_batch, forward, lambda a, b: _loss(a, b["labels"][..., 1:])), device
        )

    return make


def _model(spec: RunSpec, shape: Shape, tokens: int, device: torch.device) -> Gpt:
    from engine.measurement import quantization  # it looks for a card when it is imported

    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if spec.precision == PURE_BF16 else usual)
    try:
        model = Gpt(shape, tokens, spec.loss_chunk_tokens or tokens)
    finally:
        torch.set_default_dtype(usual)
    for path, module in list(model.named_modules()):
        if spec.load_in_4bit and type(module) is nn.Linear:
            bias = None if module.bias is None else module.bias.detach()
            how = FourBits.of(spec, spec.precision)
            model.set_submodule(path, quantization.FourBitLinear(module.weight.detach(), bias, how))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(spec.lora_rank is None or "lora_" in name)
    return model.train()
