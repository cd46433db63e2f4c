"""Trains diffusers' UNet on pictures of several shapes: each batch has one, drawn as in SDXL's trainers.

python diffusion_buckets.py --train_batch_size N
"""

import without_network  # noqa: F401, I001 - first, then in the public order

import argparse
import random

import torch
import torch.nn.functional as F
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel

BUCKETS = [(16, 16), (24, 16), (16, 24), (32, 8)]


class Buckets(torch.utils.data.IterableDataset):
    """Whole batches of one shape each."""

    def __init__(self, size):
        self.size = size

    def __iter__(self):
        while True:
            yield torch.randn(self.size, 4, *random.choice(BUCKETS))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_batch_size", type=int, default=16)
    parser.add_argument("--max_train_steps", type=int, default=2_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    sizes = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4, "attention_head_dim": 8}
    unet = UNet2DModel(sample_size=16, in_channels=4, out_channels=4, **blocks, **sizes)
    average = EMAModel(unet.parameters(), decay=0.99)
    scheduler = DDPMScheduler(num_train_timesteps=1_000)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
    rate = get_cosine_schedule_with_warmup(optimizer, 10, args.max_train_steps)
    loader = torch.utils.data.DataLoader(Buckets(args.train_batch_size), batch_size=None)
    for _, latents in zip(range(args.max_train_steps), loader, strict=False):
        noise = torch.randn_like(latents)
        times = torch.randint(0, 1_000, (len(latents),))
        loss = F.mse_loss(unet(scheduler.add_noise(latents, noise, times), times).sample, noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
        optimizer.step()
        rate.step()
        optimizer.zero_grad()
        average.step(unet.parameters())


if __name__ == "__main__":
    main()
