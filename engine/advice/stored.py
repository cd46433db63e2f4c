"""PURE: what the advice rests on, read from a document of any kind."""

from __future__ import annotations

from ..errors import SpecError
from ..facts.result_file import result_in
from ..questions.documents.estimated import Estimated, EstimatedCard
from ..questions.documents.measured import Measured
from ..questions.documents.raced import OwnRaced, Raced
from ..questions.kinds import read_result
from .document import Basis, basis_of_estimate, basis_of_result


def basis_of(document: object, gpu: str | None = None) -> Basis:
    """Read a document, of several cards the one of `gpu`. Raises SpecError where it holds no size."""
    try:
        found = read_result(result_in(document, "result"))
    except ValueError as exc:
        raise SpecError("result", f"is no result of this program: {exc}") from exc
    match found:
        case Estimated():
            basis = basis_of_estimate(_one_of(found, gpu))
        case Measured():
            basis = basis_of_result(found, found.training)
        case Raced() | OwnRaced():
            raise SpecError("result", "is a race: it recommends lines to paste, and no batch size")
        case _:
            raise SpecError("result", "is no result of this program: a validation recommends nothing")
    if basis is None:
        raise SpecError("result", "has no batch size that keeps the reserve or the margin")
    return basis


def _one_of(found: Estimated, gpu: str | None) -> EstimatedCard:
    by_id = {each.gpu.id: each for each in found.estimates}
    if gpu is None and len(by_id) == 1:
        return found.estimates[0]
    if gpu not in by_id:
        raise SpecError("gpu", f"name one GPU of this estimate: {', '.join(by_id)}")
    return by_id[gpu]
