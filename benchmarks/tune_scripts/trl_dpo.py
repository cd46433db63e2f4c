"""Trains on preferences with TRL's DPOTrainer; imports where TRL's own script has them.

Takes the arguments of `DPOConfig`. The model is given chosen and rejected answers together: two rows for each sample.
"""

import without_network  # noqa: F401 - first
from small_texts import save_causal_model, sentences


def main(arguments):
    import transformers
    from accelerate.logging import get_logger
    from datasets import Dataset
    from trl import DPOTrainer

    model_name = save_causal_model(arguments.output_dir)
    prompts, answers = sentences(2_000, 8), sentences(2_000, 16)
    trainer = DPOTrainer(
        model=model_name,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": prompts, "chosen": answers, "rejected": answers[::-1]}),
    )
    get_logger(__name__).warning("transformers %s", transformers.__version__)
    trainer.train()
    trainer.save_model(arguments.output_dir)


def make_parser():
    from trl import DPOConfig, TrlParser

    return TrlParser((DPOConfig,))


if __name__ == "__main__":
    main(*make_parser().parse_args_and_config())
