"""Trainers over models that a config makes: GRPO, LoRA, speech with a padding collator.

python trainers_of_2026.py CASE and the arguments of the trainer
"""

import without_network  # noqa: F401, I001 - first

import random
import sys

import torch
from small_texts import save_causal_model, sentences


def grpo(argv):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer, TrlParser

    (arguments,) = TrlParser((GRPOConfig,)).parse_args_and_config(argv)
    prompts = Dataset.from_dict({"prompt": sentences(2_000, 8)})

    def reward(completions, **_):
        return [float(len(set(text.split()))) for text in completions]

    model = save_causal_model(arguments.output_dir)
    GRPOTrainer(model=model, reward_funcs=reward, args=arguments, train_dataset=prompts).train()


def lora(argv):
    from datasets import Dataset
    from peft import LoraConfig, get_peft_model
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        DataCollatorForLanguageModeling,
        HfArgumentParser,
        Trainer,
        TrainingArguments,
    )

    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(argv)
    name = save_causal_model(arguments.output_dir)
    tokenizer = AutoTokenizer.from_pretrained(name)
    settings = LoraConfig(r=8, lora_alpha=16, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(name), settings)
    draw = random.Random(0)
    lines = [" ".join(line.split()[: draw.randint(8, 48)]) for line in sentences(2_000, 48)]
    rows = Dataset.from_dict({"text": lines}).map(lambda row: tokenizer(row["text"]), remove_columns=["text"])
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collate).train()


class Speech(torch.utils.data.Dataset):
    """Recordings of random length with the tokens that are said; whisper's are all padded to one length."""

    def __init__(self, is_whisper):
        draw, self.is_whisper = random.Random(0), is_whisper
        self.lengths = [draw.randint(800, 3_200) for _ in range(1_000)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, row):
        length = self.lengths[row]
        sound = torch.randn(80, 100) if self.is_whisper else torch.randn(length)
        return {"input": sound, "labels": torch.full((length // 200,), 5 + row % 20)}


def speech(argv, is_whisper):
    from transformers import (
        HfArgumentParser,
        Trainer,
        TrainingArguments,
        Wav2Vec2Config,
        Wav2Vec2ForCTC,
        WhisperConfig,
        WhisperForConditionalGeneration,
    )

    def collate(rows):
        padded = {
            name: torch.nn.utils.rnn.pad_sequence([row[name] for row in rows], batch_first=True, padding_value=value)
            for name, value in (("input", 0.0), ("labels", -100))
        }
        return {"input_features" if is_whisper else "input_values": padded.pop("input"), **padded}

    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(argv)
    arguments.remove_unused_columns = False
    if is_whisper:
        sides = {
            f"{side}_{n}": k for side in ("encoder", "decoder") for n, k in (("layers", 1), ("attention_heads", 2))
        }
        ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
        sizes = {"d_model": 32, "max_source_positions": 50, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
        model = WhisperForConditionalGeneration(WhisperConfig(vocab_size=64, **sizes, **sides, **ids))
    else:
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        places = {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "mask_time_length": 2}
        layers = {"conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_feat_extract_layers": 2}
        model = Wav2Vec2ForCTC(Wav2Vec2Config(vocab_size=64, **sizes, **places, **layers))
    Trainer(model=model, args=arguments, train_dataset=Speech(is_whisper), data_collator=collate).train()


if __name__ == "__main__":
    torch.set_num_threads(1)
    case, *argv = sys.argv[1:]
    if case in ("grpo", "lora"):
        {"grpo": grpo, "lora": lora}[case](argv)
    else:
        speech(argv, case == "whisper")
