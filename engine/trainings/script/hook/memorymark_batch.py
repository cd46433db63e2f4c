"""Gives a training the batch size to be tried, in the way chosen for it, and keeps the Trainer from uploading."""

from __future__ import annotations

import copy
from typing import Any

import memorymark_watch
from memorymark_patches import wrap


def goes_to_loaders(watched: Any, kind: Any) -> None:
    def made(make: Any, loader: Any, dataset: Any, batch_size: Any = 1, *others: Any, **options: Any) -> None:
        if batch_size is not None and options.get("batch_sampler") is None:
            watched.mark("batch_size_set", "DataLoader", batch_size)
            batch_size = watched.settings["batch_size"]
        else:
            watched.mark("own_batches")
        make(loader, dataset, batch_size, *others, **options)

    wrap(kind, "__init__", made)


def goes_to_arguments(watched: Any, module: Any) -> None:
    """Make the arguments of a Hugging Face Trainer upload nothing, and if chosen hold the batch size to be tried."""

    def checked(check: Any, arguments: Any) -> None:
        arguments.push_to_hub = False
        if watched.settings["batch"] == "hf":
            watched.mark("batch_size_set", "TrainingArguments", arguments.per_device_train_batch_size)
            arguments.per_device_train_batch_size = watched.settings["batch_size"]
            arguments.auto_find_batch_size = False
        check(arguments)

    wrap(module.TrainingArguments, "__post_init__", checked)


def loader_to_try(loader: Any) -> Any:
    """Return a copy of the loader with batches of the size to be tried; itself if another way was chosen."""
    watched = memorymark_watch.watched
    if watched is None or watched.settings["batch"] != "steps":
        return loader
    data = watched.torch.utils.data
    if not isinstance(loader, data.DataLoader) or loader.batch_size is None:
        raise TypeError(
            f"memorymark.steps takes a torch DataLoader that was given a batch_size, not {type(loader).__name__}"
            f"{' with a batch_sampler of its own' if isinstance(loader, data.DataLoader) else ''}"
        )
    size = watched.settings["batch_size"]
    watched.mark("batch_size_set", "memorymark.steps", loader.batch_size)
    tried = copy.copy(loader)
    sampler = data.BatchSampler(loader.sampler, size, loader.drop_last)
    tried.__dict__.update(batch_size=size, batch_sampler=sampler)  # a loader does not allow setting these attributes
    return tried
