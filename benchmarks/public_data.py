"""Makes the tiny random data that public scripts look for, so that they run without a network and unchanged."""

from __future__ import annotations

import json
import pickle
import random
import string
import struct
from pathlib import Path

import numpy as np
from PIL import Image

TRAINED, TESTED, LETTERS = 4_000, 1_000, string.ascii_lowercase + " \n"


def whole_mnist(folder: Path) -> None:
    """Write as many rows as MNIST has, for a script that splits them."""
    mnist(folder, 60_000, 10_000)


def mnist(folder: Path, trained: int = TRAINED, tested: int = TESTED) -> None:
    """Write the files of MNIST, as torchvision reads them below the folder `root`."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    numbers = np.random.default_rng(0)
    for name, count in (("train", trained), ("t10k", tested)):
        images = numbers.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = (np.arange(count) % 10).astype(np.uint8)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels.tobytes())


def images(folder: Path, count: int = 100, side: int = 72, mode: str = "RGB") -> None:
    """Write pictures of two classes, one folder each."""
    numbers = np.random.default_rng(0)
    for label in ("a", "b"):
        (folder / label).mkdir(parents=True)
        for number in range(count):
            _picture(numbers, side, mode).save(folder / label / f"{number}.png")


def train_and_val_images(folder: Path) -> None:
    """Write pictures of two classes for a training and an evaluation."""
    images(folder / "train")
    images(folder / "val", 10)


def flat_images(folder: Path) -> None:
    """Write pictures into one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(0)
    for number in range(100):
        _picture(numbers, 300, "RGB").save(folder / f"{number}.jpg")


def pictures_with_masks(folder: Path) -> None:
    """Write pictures, and for each a mask of two classes, under `imgs` and `masks`."""
    numbers = np.random.default_rng(0)
    for name in ("imgs", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(200):
        _picture(numbers, 64, "RGB").save(folder / "imgs" / f"{number}.png")
        mask = numbers.integers(0, 2, (64, 64), dtype=np.uint8)
        mask[0, :2] = 0, 1
        Image.fromarray(mask).save(folder / "masks" / f"{number}.png")


def _picture(numbers: np.random.Generator, side: int, mode: str) -> Image.Image:
    shape = (side, side, 3) if mode == "RGB" else (side, side)
    return Image.fromarray(numbers.integers(0, 256, shape, dtype=np.uint8))


def text(file: Path, letters: int = 200_000) -> None:
    """Write a text of random lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_text(letters))


def speeches(file: Path) -> None:
    """Write a text in which each printable letter occurs."""
    file.write_text(string.printable + _text(200_000))


def _text(letters: int) -> str:
    chosen = random.Random(0)
    return "".join(chosen.choices(LETTERS, weights=[4] * 26 + [20, 2], k=letters))


def names(file: Path) -> None:
    """Write a name a line."""
    chosen = random.Random(0)
    lines = {"".join(chosen.choices(string.ascii_lowercase, k=chosen.randint(3, 12))) for _ in range(4_000)}
    file.write_text("\n".join(sorted(lines)))


def words(folder: Path) -> None:
    """Write train, valid and test texts of a small vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = random.Random(0)
    known = ["".join(chosen.choices(string.ascii_lowercase, k=5)) for _ in range(200)]
    for name, lines in (("train", 40_000), ("valid", 500), ("test", 500)):
        (folder / f"{name}.txt").write_text("\n".join(" ".join(chosen.choices(known, k=10)) for _ in range(lines)))


def letters_as_numbers(folder: Path) -> None:
    """Write a text as 16-bit numbers, with what they mean."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(0)
    for name, count in (("train", 200_000), ("val", 20_000)):
        numbers.integers(0, 65, count, dtype=np.uint16).tofile(folder / f"{name}.bin")
    known = {"vocab_size": 65, "itos": dict(enumerate(string.printable[:65])), "stoi": {}}
    (folder / "meta.pkl").write_bytes(pickle.dumps(known))


def shards_of_stories(folder: Path) -> None:
    """Write two files of 16-bit numbers, each story behind a 1."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(0)
    for number in range(2):
        numbers.integers(1, 512, 400_000, dtype=np.uint16).tofile(folder / f"data{number:02}.bin")


def graphs_of_mutag(folder: Path) -> None:
    """Write 400 small graphs of 18 nodes or so under the name MUTAG."""
    _graphs(folder, "MUTAG", 7)


def graphs_of_proteins(folder: Path) -> None:
    """Write 400 small graphs of 18 nodes or so under the name PROTEINS."""
    _graphs(folder, "PROTEINS", 3)


def _graphs(folder: Path, name: str, kinds: int) -> None:
    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    chosen = random.Random(0)
    edges, owners, labels, first = [], [], [], 1
    for graph in range(400):
        nodes = chosen.randint(10, 26)
        for node in range(nodes):
            other = (node + 1) % nodes
            edges += [f"{first + node}, {first + other}", f"{first + other}, {first + node}"]
            owners.append(str(graph + 1))
            labels.append(str(chosen.randrange(kinds)))
        first += nodes
    texts = {"A": edges, "graph_indicator": owners, "node_labels": labels}
    texts["graph_labels"] = [str(graph % 2) for graph in range(400)]
    for kind, lines in texts.items():
        (raw / f"{name}_{kind}.txt").write_text("\n".join(lines) + "\n")


def small_chat_model(folder: Path) -> None:
    """Write a language model of two layers with random weights, and its tokenizer of single letters."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    known = {letter: number for number, letter in enumerate(["<s>", "</s>", "<?>", *string.printable])}
    letters = Tokenizer(models.WordLevel(known, unk_token="<?>"))
    letters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "unk_token": "<?>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, **special)
    tokenizer.chat_template = "{% for each in messages %}{{ each['role'] }}: {{ each['content'] }}\n{% endfor %}"
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(known), max_position_embeddings=256, **sizes)).save_pretrained(folder)


def chats(folder: Path) -> None:
    """Write 2,000 questions with answers, one JSON object a line."""
    chosen = random.Random(0)
    _lines(folder, [{"messages": [_said("user", chosen), _said("assistant", chosen)]} for _ in range(2_000)])


def pairs_of_chats(folder: Path) -> None:
    """Write 1,000 questions, each with an answer that is preferred and one that is not."""
    chosen = random.Random(0)
    rows = [
        {
            "prompt": [_said("user", chosen)],
            "chosen": [_said("assistant", chosen)],
            "rejected": [_said("assistant", chosen)],
        }
        for _ in range(1_000)
    ]
    _lines(folder, rows)


def _said(role: str, chosen: random.Random) -> dict[str, str]:
    return {"role": role, "content": "".join(chosen.choices(string.ascii_lowercase, k=chosen.randint(20, 60)))}


def _lines(folder: Path, rows: list[dict[str, object]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def small_unet(folder: Path) -> None:
    """Write the configuration of a U-Net for diffusion with two blocks."""
    folder.mkdir(parents=True, exist_ok=True)
    blocks = {"down_block_types": ["DownBlock2D"] * 2, "up_block_types": ["UpBlock2D"] * 2, "layers_per_block": 1}
    sizes = {"sample_size": 32, "block_out_channels": [16, 32], "norm_num_groups": 8}
    (folder / "config.json").write_text(json.dumps({"_class_name": "UNet2DModel", **blocks, **sizes}))


def shards_of_documents(folder: Path) -> None:
    """Write three files of texts as nanochat keeps them, and a tokenizer of single bytes."""
    import pyarrow
    import pyarrow.parquet
    import tiktoken
    import torch

    texts, tokens = folder / "base_data_climbmix", folder / "tokenizer"
    for made in (texts, tokens):
        made.mkdir(parents=True)
    chosen = random.Random(0)
    for number in range(3):
        rows = ["".join(chosen.choices(LETTERS, k=chosen.randint(20, 200))) for _ in range(4_000)]
        pyarrow.parquet.write_table(
            pyarrow.table({"text": rows}), texts / f"shard_{number:05}.parquet", row_group_size=500
        )
    known = {bytes([number]): number for number in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=".|\\n", mergeable_ranks=known, special_tokens={"<|bos|>": 256})
    (tokens / "tokenizer.pkl").write_bytes(pickle.dumps(encoding))
    torch.save(torch.tensor([1] * 256 + [0]), tokens / "token_bytes.pt")
