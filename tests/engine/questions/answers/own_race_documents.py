"""Documents of races of a made-up script."""

import json
from functools import cache
from typing import Any

from tests.engine.trainings.script.made_up_script import Busy, raced

LOADER = {"noted": {"loaders": [[0, False, False, True, 9]]}, "waits": True}
RACES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "one that gains": (("fused", "bf16"), {}),
    "two that gain": (("fused", "compile"), {}),
    "all that apply": ((), {}),
    "workers first": (("workers", "fused"), LOADER),
    "workers alone": (("workers", "bf16"), LOADER),
    "workers and a change that adds next to nothing": (("workers", "bf16"), {**LOADER, "times": {"bf16": 0.985}}),
    "workers and a change that compiles": (("workers", "compile"), LOADER),
    "workers that draw other numbers": (
        ("workers", "fused"),
        {**LOADER, "noted": {**LOADER["noted"], "draws_random": True}, "off": {"workers": 0.5}},
    ),
    "workers that fail": (("workers", "fused"), {**LOADER, "failing": ("workers",)}),
    "losses that differ": (("fused", "compile"), {"off": {"fused": 0.1}}),
    "losses that differ by rounding": (("bf16",), {"off": {"bf16": 0.001}, "times": {"bf16": 0.5}}),
    "losses that differ together": (("fused", "compile"), {"off_together": 0.1}),
    "losses that are not repeatable": (("fused",), {"drift": 0.2}),
    "a change that fails": (("fused", "compile"), {"failing": ("compile",)}),
    "a change that fails later": (("fused", "compile"), {"fails_after": {"compile": 4}}),
    "a change that is much slower": (("fused", "compile"), {"times": {"fused": 0.5, "compile": 9.0}}),
    "nothing that gains": (("fused", "bf16"), {"times": {}}),
    "masks that explain it": (("bf16",), {"masks": 0.02, "off": {"bf16": 0.05}, "times": {"bf16": 0.5}}),
    "masks that do not explain it": (("bf16", "fused"), {"masks": 0.02, "off": {"bf16": 0.07}}),
    "less memory": (("release-outputs", "fused"), {"noted": {"kept_bytes": 400}}),
    "other programs": (("fused",), {"machine": Busy}),
    "ahead beside other programs": (("fused", "bf16"), {"machine": Busy, "times": {"fused": 0.05}}),
    "other programs, and nothing that gains": (("fused",), {"machine": Busy, "times": {}}),
    "other programs while it waits": (("workers", "fused"), {**LOADER, "machine": Busy}),
    "no time to try": (("fused", "compile"), {"ends_after": 3}),
    "no time to race": (("fused", "compile"), {"ends_after": 5}),
    "time that ends in the race": (("fused", "compile"), {"ends_after": 20}),
    "time that ends in the evaluation": (("fused",), {"ends_after": 12}),
    "time that ends with the workers": (("workers", "fused"), {**LOADER, "ends_after": 12}),
    "no time to try the workers": (("workers", "fused"), {**LOADER, "ends_after": 2}),
    "time that ends after the workers": (("workers", "fused"), {**LOADER, "ends_after": 22}),
}


@cache
def _document(name: str) -> str:
    tried, changes = RACES[name]
    found, _ = raced(*tried, **changes)
    document = found.to_dict()
    for each in (*document["rounds_of_workers"], *document["rounds"]):
        each["seconds"] = float(len(each["timed"]))  # the made-up script takes no time
    document["total_seconds"] = 1_000.0
    return json.dumps(document)


def document_of(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(_document(name))
    return made
