"""PURE: the basis of an advice from the JSON of a result, a tuned command, an estimate, or a run of the portal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import SpecError
from ..from_json import from_json
from ..result import DeviceFacts, Point, Probe
from ..result_file import result_in
from .document import Basis, basis_of_estimate, basis_of_result

_POINTS = ("largest", "fastest", "recommended", "current")


def basis_of(document: object, gpu: str | None = None) -> Basis:
    """Read a document. Raises SpecError where it is none of these, or holds no size to recommend.

    `gpu` is the id of the card, for a document with the estimates of several.
    """
    content = result_in(document, "result")
    try:
        if "estimates" in content or "safe_batch_size" in content:
            basis = _of_estimate(_one_of(content.get("estimates", [content]), gpu))
        else:
            basis = _of_result(content)
    except (KeyError, TypeError, ValueError) as exc:
        raise SpecError("result", f"is no result of this program: {type(exc).__name__}: {exc}") from exc
    if basis is None:
        raise SpecError("result", "holds no batch size to recommend, so there is nothing to paste")
    return basis


def _one_of(estimates: list[dict[str, Any]], gpu: str | None) -> dict[str, Any]:
    ids = [str(each["gpu"]["id"]) for each in estimates]
    if gpu is None and len(estimates) == 1:
        return estimates[0]
    if gpu not in ids:
        raise SpecError("gpu", f"name one card of this estimate: {', '.join(ids)}")
    return estimates[ids.index(gpu)]


def _of_result(content: Mapping[str, Any]) -> Basis | None:
    points = {name: from_json(Point, content[name]) if content[name] else None for name in _POINTS}
    training = content.get("training") or {}
    speed = content.get("speed")
    return basis_of_result(
        content["spec"],
        from_json(DeviceFacts, content["device"]),
        points["recommended"],
        [Probe.from_dict(probe) for probe in content["probes"]],
        points.values(),
        is_speed_measurable=speed is None or bool(speed["is_measurable"]),
        micro_batches=training.get("micro_batches"),
        ranks=int(training.get("ranks") or 1),
    )


def _of_estimate(content: Mapping[str, Any]) -> Basis | None:
    gpu = content["gpu"]
    reserved = {at["batch_size"]: at["peak_reserved_bytes"] or at["peak_allocated_bytes"] for at in content["at"]}
    return basis_of_estimate(
        content["spec"],
        is_cpu=gpu["id"] == "cpu",
        safe=content["safe_batch_size"],
        memory=reserved,
        limit_bytes=int(content["limit_bytes"] / (1 + content["margin_fraction"])),
        total_bytes=gpu["total_bytes"],
    )
