"""Trains ten steps without a DataLoader, and ends in the way that is named."""

import os
import signal
import sys
import threading

import torch

size, way = int(sys.argv[1]), sys.argv[2]


def train():
    model = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.randn(size, 64)).square().mean().backward()
        optimizer.step()


def train_in_a_thread():
    train()
    sys.exit(0)


if way == "thread":
    thread = threading.Thread(target=train_in_a_thread)
    thread.start()
    thread.join()
else:
    train()
    if os.fork() == 0:
        os._exit(0)  # a process that has trained nothing itself
    os.wait()
    {"exit": lambda: os._exit(0), "kill": lambda: os.kill(os.getpid(), signal.SIGTERM), "abort": os.abort}[way]()
