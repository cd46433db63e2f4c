"""Makes random batches: the inputs and targets of each task, in the shapes of a real training. Needs torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..settings.catalog import Task
from ..settings.spec import RunSpec
from ..settings.step_settings import PACKED, PADDED

Batch = dict[str, Tensor]

_OBJECTS = 8
"""Objects in each image of a detection batch: COCO has 7 on average."""
_LATENT_CHANNELS, _LATENT_SCALE, _TEXT_WIDTH = 4, 8, 768
"""Stable Diffusion 1: channels of the autoencoder, the factor by which it shrinks a side, width of the text encoder."""
NOT_LEARNED = -100
"""The label of tokens that every loss in transformers ignores."""
_SEQUENCES_IN_A_ROW = 4
"""Sequences in a packed row. Memory does not depend on it: the mask that separates them covers the whole row."""
_MEL_BINS, _SOUND_FRAMES = 80, 3000
"""Whisper: its spectrogram of 30 seconds, to which every recording is padded."""


def make_batch(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    return _BATCHES[spec.workload.task](spec, batch_size, device)


def _classified_texts(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    return {**_padded_texts(spec, batch_size, spec.input_size, device), "labels": _labels(spec, (batch_size,), device)}


def _continued_texts(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    """Make texts in which every token but padding is a target; full rows are like pieces of a long corpus.

    Padded: one whole row, the others half of it. Packed: positions restart at 0, as in DataCollatorWithFlattening.
    """
    tokens = _tokens(spec, (batch_size, spec.input_size), device)
    batch = {"input_ids": tokens, "labels": tokens.clone()}
    if spec.sequences == PADDED:
        mask = torch.ones_like(tokens)
        mask[1:, -(-spec.input_size // 2) :] = 0
        return {**batch, "attention_mask": mask, "labels": tokens.masked_fill(mask == 0, NOT_LEARNED)}
    if spec.sequences == PACKED:
        positions = torch.arange(spec.input_size, device=device) % -(-spec.input_size // _SEQUENCES_IN_A_ROW)
        return {**batch, "position_ids": positions.repeat(batch_size, 1)}
    return batch


def _text_pairs(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    target = _tokens(spec, (batch_size, spec.workload.target_length or 1), device)
    return {**_padded_texts(spec, batch_size, spec.input_size, device), "labels": target}


def _classified_images(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    return {"pixel_values": _images(spec, batch_size, device), "labels": _labels(spec, (batch_size,), device)}


def _segmented_images(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    side = spec.input_size
    return {
        "pixel_values": _images(spec, batch_size, device),
        "labels": _labels(spec, (batch_size, side, side), device),
    }


def _images_with_objects(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    """Make boxes (n, objects, 4) from their corners; their sides are a quarter to a half of the image's."""
    side = spec.input_size
    corners = torch.rand(batch_size, _OBJECTS, 2, device=device) * side / 2
    sizes = (1 + torch.rand(batch_size, _OBJECTS, 2, device=device)) * side / 4
    return {
        "pixel_values": _images(spec, batch_size, device),
        "boxes": torch.cat([corners, corners + sizes], dim=-1),
        "labels": _labels(spec, (batch_size, _OBJECTS), device),
    }


def _recordings(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    sound = torch.randn(batch_size, _MEL_BINS, _SOUND_FRAMES, device=device)
    return {"input_features": sound, "labels": _tokens(spec, (batch_size, spec.input_size), device)}


def _images_with_texts(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    texts = _padded_texts(spec, batch_size, spec.workload.target_length or 1, device)
    return {"pixel_values": _images(spec, batch_size, device), **texts}


def _noised_images(spec: RunSpec, batch_size: int, device: torch.device) -> Batch:
    """Make latent images, the noise in them, and encoded texts: neither encoder is trained."""
    shape = (batch_size, _LATENT_CHANNELS, spec.input_size // _LATENT_SCALE, spec.input_size // _LATENT_SCALE)
    return {
        "sample": torch.randn(shape, device=device),
        "timestep": torch.randint(0, 1000, (batch_size,), device=device),
        "encoder_hidden_states": torch.randn(batch_size, spec.workload.target_length or 1, _TEXT_WIDTH, device=device),
        "noise": torch.randn(shape, device=device),
    }


_BATCHES: dict[Task, Callable[[RunSpec, int, torch.device], Batch]] = {
    "text-classification": _classified_texts,
    "text-generation": _continued_texts,
    "text2text-generation": _text_pairs,
    "image-classification": _classified_images,
    "image-segmentation": _segmented_images,
    "object-detection": _images_with_objects,
    "automatic-speech-recognition": _recordings,
    "image-text-matching": _images_with_texts,
    "text-to-image": _noised_images,
}


def _padded_texts(spec: RunSpec, batch_size: int, length: int, device: torch.device) -> Batch:
    """Make texts with one token of padding: the model would drop a mask of ones, and take less memory than usual."""
    tokens = _tokens(spec, (batch_size, length), device)
    mask = torch.ones_like(tokens)
    if length > 1:
        mask[0, -1] = 0
    pad_token = spec.workload.config.get("pad_token_id")
    if pad_token is not None:
        tokens = tokens.masked_fill(mask == 0, pad_token)
    return {"input_ids": tokens, "attention_mask": mask}


def _tokens(spec: RunSpec, shape: tuple[int, ...], device: torch.device) -> Tensor:
    # the last token of the vocabulary is left out: it is GPT-2's padding
    return torch.randint(0, (spec.workload.vocabulary_size or 2) - 1, shape, device=device)


def _images(spec: RunSpec, batch_size: int, device: torch.device) -> Tensor:
    return torch.randn(batch_size, 3, spec.input_size, spec.input_size, device=device)


def _labels(spec: RunSpec, shape: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.randint(0, spec.workload.label_count or 2, shape, device=device)
