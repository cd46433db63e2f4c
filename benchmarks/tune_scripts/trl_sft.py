"""Fine-tunes a causal language model with TRL's SFTTrainer; imports where TRL's own script has them.

Takes the arguments of `SFTConfig`. TRL looks for torch, and nothing has imported it before the arguments are read.
"""

import without_network  # noqa: F401 - first
from small_texts import save_causal_model, sentences


def main(arguments):
    import transformers
    from accelerate.logging import get_logger
    from datasets import Dataset
    from trl import SFTTrainer

    model_name = save_causal_model(arguments.output_dir)
    turns = [[{"role": role, "content": line} for role in ("user", "assistant")] for line in sentences(2_000)]
    trainer = SFTTrainer(
        model=model_name,
        args=arguments,
        train_dataset=Dataset.from_dict({"messages": turns}),
    )
    get_logger(__name__).warning("transformers %s", transformers.__version__)
    trainer.train()
    trainer.save_model(arguments.output_dir)


def make_parser():
    from trl import SFTConfig, TrlParser

    return TrlParser((SFTConfig,))


if __name__ == "__main__":
    main(*make_parser().parse_args_and_config())
