"""Documents of races with a made-up worker."""

import json
from functools import cache
from typing import Any

from engine.settings.spec import CPU_DEFAULT_LIMIT_BYTES
from tests.engine.fake_racer import FAST, LOSSES, raced

SLOWER_SMALL = {"factors": FAST, "step_seconds": lambda size: 0.1 + 0.001 * size}
RACES: dict[str, dict[str, Any]] = {
    "changes that gain": {"factors": FAST, "step_seconds": lambda size: 0.025 * size},
    "a batch size of its own": SLOWER_SMALL,
    "nothing that gains": {"step_seconds": lambda size: 0.1 * size},
    "losses that differ": {"factors": FAST, "losses_of": {"bf16": (2.0, 1.5, 1.2, 1.1, 1.3)}},
    "losses that differ by rounding": {"factors": FAST, "losses_of": {"bf16": (*LOSSES[:4], 1.0001)}},
    "a change that fails": {"factors": FAST, "fails": frozenset({"compile"})},
    "a change that is much slower": {**SLOWER_SMALL, "factors": {**FAST, "checkpointing": 0.1}},
    "other programs": {"factors": FAST, "others_cores": 0.9},
    "ahead beside other programs": {"factors": {"fused": 12.0}, "others_cores": 0.9},
    "other programs, and nothing that gains": {"step_seconds": lambda size: 0.1 * size, "others_cores": 0.9},
    "too little time": {"factors": FAST, "ends_after": 25},
    "time that ends between": {"factors": FAST, "ends_after": 60},
    "no time to race": {"factors": FAST, "ends_after": 5},
    "no time to admit all": {"factors": FAST, "ends_after": 3},
}


@cache
def _document(name: str) -> str:
    found, _ = raced(**RACES[name])
    document = found.to_dict()
    for each in (*document["rounds"], *document["rounds_of_sizes"]):
        each["seconds"] = float(len(each["timed"]))  # the made-up worker takes no time
    document["total_seconds"] = 1_000.0
    capacity = document["device"]["capacity_bytes"]
    document["device"]["limit_bytes"] = min(CPU_DEFAULT_LIMIT_BYTES, capacity)
    return json.dumps(document)


def document_of(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(_document(name))
    return made
