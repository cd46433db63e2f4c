"""One process stands in for a rank of many: what its collectives give, and what it cannot know."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from engine.settings.ranks.emulated_group import NotEmulated, emulated_ranks

RANKS, RANK = 8, 3
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.(jit|distributed)"),
    pytest.mark.filterwarnings("ignore:Attempted to get default timeout for nccl"),
]


@pytest.fixture
def rank() -> Iterator[None]:
    with emulated_ranks(RANK, RANKS):
        dist.init_process_group("gloo", init_method="env://")
        yield


@pytest.mark.usefixtures("rank")
def test_a_script_sees_its_rank_the_ranks_and_the_backend_it_named() -> None:
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (RANK, RANKS, "gloo")


@pytest.mark.usefixtures("rank")
def test_collectives_act_as_if_every_rank_held_the_same() -> None:
    summed, averaged, largest, flag = torch.ones(3), torch.ones(3), torch.tensor([2]), torch.tensor([True])
    dist.all_reduce(summed)
    dist.all_reduce(averaged, op=dist.ReduceOp.AVG)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    dist.all_reduce(flag)
    parts = [torch.zeros(2) for _ in range(RANKS)]
    dist.all_gather(parts, torch.tensor([1.0, 2.0]))
    whole, part = torch.zeros(RANKS * 2), torch.zeros(2)
    dist.all_gather_into_tensor(whole, torch.tensor([1.0, 2.0]))
    dist.reduce_scatter_tensor(part, torch.arange(RANKS * 2.0))
    exchanged = torch.zeros(RANKS)
    dist.all_to_all_single(exchanged, torch.arange(float(RANKS)))
    dist.barrier()
    dist.monitored_barrier()
    assert summed.tolist() == [8, 8, 8]
    assert averaged.tolist() == [1, 1, 1]
    assert (largest.item(), flag.item()) == (2, True)
    assert {tuple(each.tolist()) for each in parts} == {(1, 2)}
    assert whole.tolist() == [1, 2] * RANKS
    assert part.tolist() == [6 * RANKS, 7 * RANKS]
    assert exchanged.tolist() == [RANK] * RANKS


@pytest.mark.usefixtures("rank")
def test_objects_are_gathered_from_every_rank() -> None:
    gathered: list[object] = [None] * RANKS
    dist.all_gather_object(gathered, {"loss": 1})
    at_root: list[object] | None = [None] * RANKS
    dist.gather_object("mine", at_root, dst=RANK)
    own = ["mine", 2]
    dist.broadcast_object_list(own, src=RANK)
    assert gathered == [{"loss": 1}] * RANKS
    assert at_root == ["mine"] * RANKS
    assert own == ["mine", 2]


def test_what_rank_0_broadcast_is_known_to_the_ranks_emulated_after_it(tmp_path: Path) -> None:
    for number in (0, 7):
        with emulated_ranks(number, RANKS, tmp_path):
            dist.init_process_group("gloo")
            said = [{"run": "a"}, 5] if number == 0 else [None, None]
            steps = torch.tensor([41 if number == 0 else 0])
            part: list[object] = [None]
            dist.broadcast_object_list(said, src=0)
            dist.broadcast(steps, src=0)
            dist.scatter_object_list(part, [f"for {n}" for n in range(RANKS)] if number == 0 else None, src=0)
        assert said == [{"run": "a"}, 5]
        assert steps.item() == 41
        assert part == [f"for {number}"]


@pytest.mark.usefixtures("rank")
def test_what_only_another_rank_knows_is_refused_with_what_helps() -> None:
    with pytest.raises(NotEmulated, match=r"rank 3 needs an object that rank 0 sends: .*--rank 0,3"):
        dist.broadcast_object_list([None], src=0)
    with pytest.raises(NotEmulated, match="recv_object_list"):
        dist.recv_object_list([None], src=0)
    with pytest.raises(NotEmulated, match="expert parallelism"):
        dist.all_to_all_single(torch.zeros(9), torch.zeros(8), [2, *[1] * 7], [1] * 8)


@pytest.mark.usefixtures("rank")
def test_groups_and_meshes_have_their_own_ranks_and_sizes() -> None:
    mine, others = dist.new_group([2, 3, 5]), dist.new_group([0, 1])
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"))
    assert (dist.get_rank(mine), dist.get_world_size(mine), dist.get_world_size(others)) == (1, 3, -1)
    assert list(mesh.get_coordinate() or ()) == [0, 3]
    assert (mesh["replicate"].size(), mesh["shard"].size(), mesh["shard"].get_local_rank()) == (2, 4, 3)


@pytest.mark.parametrize("backend", ["gloo", "nccl", "cpu:gloo,cuda:nccl", None])
def test_a_model_trains_sharded_over_a_mesh(backend: str | None) -> None:
    torch.manual_seed(0)
    with emulated_ranks(RANK, RANKS):
        dist.init_process_group(backend)
        mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"))
        model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 16))
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(4, 16)).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        held = sum(each.to_local().numel() for each in model.parameters())  # type: ignore[attr-defined]
        assert held == sum(each.numel() for each in model.parameters()) // 4


@pytest.mark.usefixtures("rank")
def test_the_state_of_an_optimizer_is_held_in_parts() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(nn.Sequential(*[nn.Linear(16, 16, bias=False) for _ in range(8)]))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
    model(torch.ones(4, 16)).sum().backward()
    optimizer.step()
    assert sum(t.numel() for state in optimizer.optim.state.values() for t in state.values()) == 2 * 16 * 16 + 1


def test_torch_is_left_as_it_was() -> None:
    c10d: Any = dist.distributed_c10d
    before = c10d._new_process_group_helper, dist.broadcast_object_list, c10d.rendezvous
    with emulated_ranks(0, 2):
        dist.init_process_group("gloo")
        assert c10d._new_process_group_helper is not before[0]
    assert (c10d._new_process_group_helper, dist.broadcast_object_list, c10d.rendezvous) == before
    assert not dist.is_initialized()
    assert "emulated" not in c10d.Backend.default_device_backend_map.values()


def test_a_rank_that_is_none_of_them_is_no_rank() -> None:
    with pytest.raises(ValueError, match="rank 9 is none of 8"), emulated_ranks(9, 8):
        pass


def test_a_broadcast_that_was_cut_off_is_not_known(tmp_path: Path) -> None:
    with emulated_ranks(1, 2, tmp_path):
        dist.init_process_group("gloo")
        (tmp_path / "object-object-0-1").write_bytes(pickle.dumps(["whole"])[:-3])
        with pytest.raises(NotEmulated):
            dist.broadcast_object_list([None], src=0)
