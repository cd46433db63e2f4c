"""Measures the context of a card and the workspaces of cuBLAS. Needs torch and a CUDA or ROCm GPU.

This process opens the card first and watches the bytes that the driver counts as used. A second one, the tenant, trains
a small model, so that the usual kernels are loaded, reports what its allocator reserved, and ends. Its context is: used
with the tenant, less used before, less reserved. Where before and after differ, another process was there: no result.
The workspaces are what the tenant's allocator handed out, beyond the tensors, at each thread's first multiplication.

Not run on a GPU yet. To check by hand: `nvidia-smi` before, and during `python -c
"import torch; torch.ones(1, device='cuda'); input()"`, whose allocator reserves 2 MiB. Known limits: a larger model
loads more kernels, so its context is somewhat larger; a card that drives a display is refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime
from typing import Any

import torch
from torch import nn

from ..errors import DeviceUnavailable, EngineError
from ..measurement.device import facts_of, resolve
from .calibration import Calibration, context_bytes
from .gpus import match

_TENANT_SECONDS = 180
_SIDE = 512  # rows and columns of the matrices multiplied: any size takes the workspace


def measure(name: str) -> Calibration:
    """Measure the constants of the card `name`. Raises DeviceUnavailable for other devices, and where there is none."""
    if not name.startswith("cuda"):
        raise DeviceUnavailable(f"{name[:80]} has no context to calibrate; name a GPU: cuda:0")
    device = resolve(name)
    used_before = _used_bytes(device)
    tenant, used_with_it = _watch_tenant(device)
    used_after = _used_bytes(device)
    facts = facts_of(str(device))
    gpu = match(facts.name, facts.capacity_bytes)
    return Calibration(
        device_name=facts.name,
        gpu_id=None if gpu is None else gpu.id,
        total_bytes=facts.capacity_bytes,
        context_bytes=context_bytes(used_before, used_with_it, used_after, tenant.pop("reserved_bytes")),
        **tenant,
        torch=torch.__version__,
        driver=facts.driver,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _used_bytes(device: torch.device) -> int:
    torch.cuda.synchronize(device)
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    return int(total_bytes - free_bytes)


def _watch_tenant(device: torch.device) -> tuple[dict[str, int], int]:
    command = [sys.executable, "-m", __spec__.name, str(device)]
    tenant = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    guard = threading.Timer(_TENANT_SECONDS, tenant.kill)
    guard.start()
    try:
        with tenant:  # leaving the block closes its input, which ends it, and waits
            assert tenant.stdout is not None
            line = tenant.stdout.readline()
            used_bytes = _used_bytes(device)
    finally:
        guard.cancel()
    if tenant.returncode != 0 or not line:
        raise EngineError(
            f"the process that opens {device} ended with status {tenant.returncode}; calibration needs two processes "
            "on the device at once, which a card in exclusive-process mode does not allow"
        )
    return json.loads(line), used_bytes


def _run_tenant(name: str) -> None:
    device = torch.device(name)
    taken = _workspaces(device)
    _train_small_model(device)
    torch.cuda.synchronize(device)
    taken["reserved_bytes"] = torch.cuda.memory_reserved(device)
    sys.stdout.write(json.dumps(taken) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


def _workspaces(device: torch.device) -> dict[str, int]:
    """Measure what the allocator handed out beyond the tensors, at the first multiplication of each kind and thread."""

    def allocated_bytes() -> int:
        torch.cuda.synchronize(device)
        return int(torch.cuda.memory_allocated(device))

    matrix = torch.ones(_SIDE, _SIDE, device=device, requires_grad=True)
    ones, tensor_bytes = torch.ones_like(matrix), matrix.numel() * matrix.element_size()
    bias = torch.ones(_SIDE, device=device)
    start = allocated_bytes()
    product = matrix @ matrix
    forward = allocated_bytes()
    product.backward(ones)
    backward = allocated_bytes()
    with torch.no_grad():
        output = nn.functional.linear(ones, ones, bias)
    last = allocated_bytes()
    return {
        "cublas_workspace_bytes": forward - start - tensor_bytes,
        "autograd_workspace_bytes": backward - forward - tensor_bytes,  # the gradient stays
        "cublaslt_workspace_bytes": last - backward - output.numel() * output.element_size(),
    }


def _train_small_model(device: torch.device) -> None:
    """Train one step over the layers that the offered models are made of, in single precision."""
    layers: list[Any] = [nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.GELU(), nn.AdaptiveAvgPool2d(8), nn.Flatten(2)]
    encoder = nn.TransformerEncoderLayer(64, 4, batch_first=True)
    model = nn.Sequential(*layers, encoder, nn.LayerNorm(64)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    output = model(torch.ones(4, 3, 32, 32, device=device))
    nn.functional.cross_entropy(output.flatten(1), torch.zeros(4, dtype=torch.long, device=device)).backward()
    optimizer.step()


if __name__ == "__main__":
    _run_tenant(sys.argv[1])
