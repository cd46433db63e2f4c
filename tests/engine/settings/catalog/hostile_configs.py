"""Fifty configs that nobody should trust: too large, too deep, not finite, negative, of other types, with code."""

import json
from typing import Any

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
VIT: dict[str, Any] = {"model_type": "vit", "hidden_size": 64, "num_hidden_layers": 2, "image_size": 32}


def _changed(**values: Any) -> str:
    return json.dumps({**LLAMA, **values})


def _raw(name: str, value: str) -> str:
    """Write a value as text that `json.dumps` would not."""
    return f"{json.dumps(LLAMA)[:-1]}, {json.dumps(name)}: {value}}}"


REFUSED: dict[str, tuple[str, str]] = {
    # by name: the text, and what the refusal must say
    "no text": ("", "not valid JSON"),
    "no JSON": ("model_type: llama", "not valid JSON"),
    "cut off": (json.dumps(LLAMA)[:-5], "not valid JSON"),
    "a list": ("[]", "must be a JSON object"),
    "a number": ("1e999", "must be a JSON object"),
    "null": ("null", "must be a JSON object"),
    "a text": ('"llama"', "must be a JSON object"),
    "1 MB": (_changed(note="x" * 1_000_000), "larger than 64 KiB"),
    "many values": (_changed(layer_types=["x"] * 10_000), "at most 1,024"),
    "very many values": (json.dumps({**LLAMA, "a": [[0] * 10_000, [0] * 10_500]}), "values"),
    "many names": (json.dumps({"k" * 101: 1, **LLAMA}), "more than 100 characters"),
    "lists 10,000 deep": (_raw("a", "[" * 10_000 + "]" * 10_000), "nested"),
    "objects 5,000 deep": (_raw("a", '{"a":' * 5_000 + "1" + "}" * 5_000), "nested"),
    "five deep": (_raw("a", "[[[[[]]]]]"), "nested more than 4"),
    "NaN": (_raw("initializer_range", "NaN"), "not valid JSON: NaN"),
    "Infinity": (_raw("rope_theta", "Infinity"), "not valid JSON: Infinity"),
    "-Infinity": (_raw("rope_theta", "-Infinity"), "not valid JSON: -Infinity"),
    "overflow": (_raw("rope_theta", "1e400"), "rope_theta is out of range"),
    "long integer": (_raw("eos_token_id", "9" * 4_000), "eos_token_id is out of range"),
    "very long integer": (_raw("eos_token_id", "9" * 6_000), "not valid JSON"),
    "named twice": (_raw("hidden_size", "128"), "stands twice"),
    "no model type": (json.dumps({"vocab_size": 10}), "model_type is missing"),
    "unknown model type": (_changed(model_type="own"), "'own' is not offered"),
    "model type of a number": (_changed(model_type=7), "'7' is not offered"),
    "model type of a list": (_changed(model_type=["llama"]), "is not offered"),
    "model type as a path": (_changed(model_type="../../llama"), "is not offered"),
    "huge layers": (_changed(num_hidden_layers=10**9), "from 1 to 512"),
    "no layers": (_changed(num_hidden_layers=0), "from 1 to 512"),
    "negative layers": (_changed(num_hidden_layers=-2), "from 1 to 512"),
    "negative width": (_changed(hidden_size=-64), "from 1 to 131,072"),
    "huge width": (_changed(hidden_size=10**7), "from 1 to 131,072"),
    "huge vocabulary": (_changed(vocab_size=10**8), "from 1 to 2,000,000"),
    "no vocabulary": (_changed(vocab_size=None), "vocab_size is missing"),
    "huge positions": (_changed(max_position_embeddings=10**12), "from 1 to 10,000,000"),
    "one position": (_changed(max_position_embeddings=1), "no room for two tokens"),
    "layers as text": (_changed(num_hidden_layers="2"), "must be a whole number"),
    "layers as true": (_changed(num_hidden_layers=True), "must be a whole number"),
    "layers as a fraction": (_changed(num_hidden_layers=2.5), "must be a whole number"),
    "width as a list": (_changed(hidden_size=[64]), "must be a whole number"),
    "heads as an object": (_changed(num_attention_heads={"a": 1}), "must be a whole number"),
    "auto_map": (_changed(auto_map={"AutoModel": "evil.py--Evil"}), "auto_map names code"),
    "trust_remote_code": (_changed(trust_remote_code=True), "trust_remote_code is never done"),
    "quantized": (_changed(quantization_config={"load_in_4bit": True}), "quantization_config"),
    "a path": (_changed(hidden_act="/etc/passwd"), "never followed"),
    "an address": (_changed(hidden_act="https://example.org/code.py"), "never followed"),
    "code": (_changed(hidden_act="__import__('os').system('id')"), "never followed"),
    "a nested model": (_changed(text_config={"model_type": "llama"}), "several models"),
    "name of another kind": (json.dumps({**LLAMA, "a b": 1}), "no name of a setting"),
    "an image of two sides": (json.dumps({**VIT, "image_size": [32, 48]}), "one whole number"),
    "a huge image": (json.dumps({**VIT, "image_size": 10**6}), "from 1 to 4,096"),
}
"""Refused as they are read, without torch and without a process."""

ODD: dict[str, str] = {
    "heads that do not divide": _changed(num_attention_heads=7),
    "unknown activation": _changed(hidden_act="nosuch"),
    "a setting that is a method": _changed(to_dict=1, from_pretrained=2),
    "a setting without a setter": _changed(use_return_dict=True),
    "unknown rope": _changed(rope_scaling={"rope_type": "nosuch", "factor": 2.0}),
    "an attribute of another kind": _changed(rms_norm_eps="small"),
    "experts beyond measure": json.dumps(
        {**LLAMA, "model_type": "mixtral", "num_local_experts": 512, "num_hidden_layers": 512}
    ),
}
"""Read, and then refused or counted by the process that builds them, within its limits."""
