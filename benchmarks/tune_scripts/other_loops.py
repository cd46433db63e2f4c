"""Trainings with no epoch over a set of pictures or sentences, as people write them in 2026, small.

python other_loops.py CASE BATCH_SIZE
"""

import copy
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils.data import DataLoader, TensorDataset

case, batch_size = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(1)
random.seed(1)


def mlp(before, after, width=128):
    return nn.Sequential(
        nn.Linear(before, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, after)
    )


class Splats(nn.Module):
    """Points that blend to the colours of pixels; every tenth step some are doubled and faint ones go."""

    def __init__(self, points=64):
        super().__init__()
        self.means, self.colours = nn.Parameter(torch.rand(points, 2)), nn.Parameter(torch.rand(points, 3))
        self.opacities = nn.Parameter(torch.randn(points))

    def forward(self, pixels):
        near = torch.exp(-(pixels[:, None] - self.means).square().sum(2) * 50) * self.opacities.sigmoid()
        return near @ self.colours / (near.sum(1, keepdim=True) + 1e-6)

    @torch.no_grad()
    def change(self, optimizer, rows):
        for group, (name, old) in zip(optimizer.param_groups, self.named_parameters(), strict=True):
            state = optimizer.state.pop(old)
            new = nn.Parameter(old[rows].clone())
            kept = {key: value[rows].clone() for key, value in state.items() if value.dim()}
            optimizer.state[new], group["params"] = state | kept, [new]
            setattr(self, name, new)


def splats():
    model = Splats()
    optimizer = torch.optim.Adam([{"params": [p], "lr": 1e-2} for p in model.parameters()])
    for step in range(1, 1_001):
        pixels = torch.rand(batch_size, 2)
        optimizer.zero_grad()
        F.l1_loss(model(pixels), pixels[:, :1].repeat(1, 3)).backward()
        largest = model.means.grad.norm(dim=1).topk(8).indices
        optimizer.step()
        if step % 10 == 0 and step <= 150:
            everything = torch.arange(len(model.means))
            model.change(optimizer, torch.cat([everything, largest]))
        if step % 50 == 0 and len(model.means) > 64:
            model.change(optimizer, model.opacities.topk(len(model.means) - 16).indices)


class Agent(nn.Module):
    """An actor and a critic."""

    def __init__(self):
        super().__init__()
        self.actor, self.critic = mlp(16, 4), mlp(16, 1)

    def act(self, observations, actions=None):
        chances = torch.distributions.Categorical(logits=self.actor(observations))
        actions = chances.sample() if actions is None else actions
        return actions, chances.log_prob(actions), chances.entropy(), self.critic(observations)


def ppo(environments, minibatch, steps=128):
    """PPO in cleanrl's way, the environments being noise."""
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    for _ in range(50):
        observations, rewards = torch.randn(steps, environments, 16), torch.rand(steps, environments)
        actions, log_probabilities = (torch.zeros(steps, environments) for _ in range(2))
        values = torch.zeros(steps, environments)
        for step in range(steps):
            with torch.no_grad():
                actions[step], log_probabilities[step], _, value = agent.act(observations[step])
                values[step] = value.flatten()
        returns = rewards.flip(0).cumsum(0).flip(0) / steps
        flat = [each.flatten(0, 1) for each in (observations, actions, log_probabilities, returns, returns - values)]
        for _ in range(4):
            for rows in torch.randperm(steps * environments).split(minibatch):
                seen, did, before, wanted, advantage = (each[rows] for each in flat)
                _, now, entropy, value = agent.act(seen, did)
                ratio = (now - before).exp()
                policy = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
                loss = policy - 0.01 * entropy.mean() + 0.5 * (value.flatten() - wanted).square().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()


def federated():
    """Federated averaging; each round some clients train a copy of the model on rows of their own."""
    together = mlp(32, 10)
    clients = [TensorDataset(torch.randn(rows, 32), torch.randint(10, (rows,))) for rows in range(4_000, 8_000, 500)]
    for _ in range(40):
        trained = []
        for rows in random.sample(clients, 3):
            model = copy.deepcopy(together)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for inputs, labels in DataLoader(rows, batch_size, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
            trained.append(model.state_dict())
        means = {name: torch.stack([each[name] for each in trained]).mean(0) for name in trained[0]}
        together.load_state_dict(means)


def ensemble():
    """Five models at once by vmap, each on the same batch."""
    models = [mlp(32, 10) for _ in range(5)]
    parameters, buffers = stack_module_state(models)
    skeleton = copy.deepcopy(models[0]).to("meta")
    optimizer = torch.optim.AdamW(parameters.values(), lr=1e-3)
    rows = TensorDataset(torch.randn(20_000, 32), torch.randint(10, (20_000,)))

    def loss_of(one, others, inputs, labels):
        return F.cross_entropy(functional_call(skeleton, (one, others), (inputs,)), labels)

    for _ in range(100):
        for inputs, labels in DataLoader(rows, batch_size, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            vmap(loss_of, in_dims=(0, 0, None, None))(parameters, buffers, inputs, labels).sum().backward()
            optimizer.step()


def graphs():
    """Batches of whole graphs, whose nodes vary."""
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader
    from torch_geometric.nn import GCN, global_mean_pool

    def graph():
        nodes = random.randint(10, 60)
        return Data(x=torch.randn(nodes, 16), edge_index=torch.randint(nodes, (2, 4 * nodes)), y=torch.rand(1))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions, self.head = GCN(16, 32, 2), nn.Linear(32, 1)

        def forward(self, x, edge_index, batch):
            return self.head(global_mean_pool(self.convolutions(x, edge_index), batch)).flatten()

    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = GraphLoader([graph() for _ in range(2_000)], batch_size=batch_size, shuffle=True)
    for _ in range(100):
        for data in loader:
            optimizer.zero_grad()
            F.mse_loss(model(data.x, data.edge_index, data.batch), data.y).backward()
            optimizer.step()


if case == "minibatches":
    ppo(64, batch_size)
elif case == "environments":
    ppo(batch_size, batch_size * 128 // 4)
else:
    {"splats": splats, "federated": federated, "ensemble": ensemble, "graphs": graphs}[case]()
