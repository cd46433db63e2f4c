"""A training on JPEG files that are decoded, cropped and mirrored in the process that trains."""

import io
import sys

import numpy
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

torch.set_num_threads(1)
torch.manual_seed(1)
change = transforms.Compose(
    [
        transforms.RandomResizedCrop(64),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(0.2, 0.2, 0.2),
        transforms.ToTensor(),
        transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    ]
)


def jpeg(seed):
    small = numpy.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=numpy.uint8)
    file = io.BytesIO()
    Image.fromarray(small).resize((256, 256), Image.Resampling.BICUBIC).save(file, "JPEG")
    return file.getvalue()


class Photos(Dataset):
    def __init__(self):
        self.files = [jpeg(seed) for seed in range(64)]

    def __len__(self):
        return 4_096

    def __getitem__(self, number):
        with Image.open(io.BytesIO(self.files[number % len(self.files)])) as picture:
            return change(picture.convert("RGB")), number % 10


model = nn.Sequential(
    nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(Photos(), batch_size=int(sys.argv[1]), shuffle=True)
for _ in range(10):
    for images, target in loader:
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
