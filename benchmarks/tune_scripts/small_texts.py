"""A tokenizer of 500 words, sentences made of them, and small models with random weights, saved as those of a hub."""

import random
from pathlib import Path

WORDS = [f"word{number}" for number in range(500)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHAT = "{% for each in messages %}{{ each['role'] + ' ' + each['content'] + ' [SEP] ' }}{% endfor %}"


def sentences(count: int, words: int = 24) -> list[str]:
    """The same in each start."""
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=words)) for _ in range(count)]


def save_tokenizer(folder: str) -> str:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="[SEP]", model_max_length=64, **names)
    fast.chat_template = CHAT
    fast.save_pretrained(folder)
    return folder


def save_causal_model(folder: str) -> str:
    """A GPT-2 of one layer with its tokenizer, to be loaded by `from_pretrained`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2}
    config = GPT2Config(vocab_size=len(SPECIAL) + len(WORDS), bos_token_id=2, eos_token_id=3, pad_token_id=0, **sizes)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return save_tokenizer(folder)


def save_encoder(folder: str) -> str:
    """A BERT of one layer with its tokenizer, to be loaded by `from_pretrained`."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(SPECIAL) + len(WORDS), **sizes)).save_pretrained(folder)
    return save_tokenizer(folder)


def save_lines(folder: str, count: int) -> str:
    """A file with a sentence in each line."""
    path = Path(folder) / "train.txt"
    path.write_text("\n".join(sentences(count)))
    return str(path)
