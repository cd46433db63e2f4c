"""What the address of a comparison or a trend asks for. What is not understood is refused, by its parameter's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from engine.catalog import WORKLOADS
from engine.spec import MODES, OPTIMIZERS, PRECISIONS

CHARTED_MAX = 8
"""As many runs as there are colours; more are compared as a table."""
COMPARED_MAX = 50
SCALES = ("log", "linear")
_LARGEST_ID = 2**63 - 1


class BadQuery(Exception):
    """An address that cannot be answered: which parameter, and what would be right."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(f"{parameter}: {message}")
        self.parameter = parameter
        self.message = message


class Query(Protocol):
    """What is used of Django's QueryDict."""

    def __iter__(self) -> Iterator[str]: ...
    def get(self, key: str, default: Any = None, /) -> Any: ...
    def getlist(self, key: str) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """`?ids=3,8,9&baseline=3&x=log&y=linear`. Without a baseline it is the first run that has a result."""

    ids: tuple[int, ...]
    baseline: int | None = None
    x: str = "log"
    y: str = "linear"

    @classmethod
    def of(cls, query: Query) -> CompareQuery:
        _refuse_unknown(query, ("ids", "baseline", "x", "y"))
        ids = _ids(",".join(query.getlist("ids")))
        return cls(ids, _baseline(query.get("baseline"), ids), _scale(query, "x", "log"), _scale(query, "y", "linear"))

    def address(self, **changed: Any) -> str:
        """The same view with these parts changed, as the query of an address."""
        parts = {"ids": self.ids, "baseline": self.baseline, "x": self.x, "y": self.y} | changed
        parts["ids"] = ",".join(map(str, parts["ids"]))
        return "?" + urlencode({name: value for name, value in parts.items() if value is not None}, safe=",")


@dataclass(frozen=True, slots=True)
class TrendQuery:
    """One workload, its settings and a card: runs that agree in all of it can be laid side by side over time.

    `input_size` is in tokens or pixels. A setting that the address leaves out is the default of a new run.
    """

    model: str
    gpu: str
    precision: str = "fp32"
    optimizer: str = "adamw"
    mode: str = "train"
    gradient_checkpointing: bool = False
    pretrained: bool = False
    input_size: int | None = None
    memory_limit_bytes: int | None = None

    @classmethod
    def of(cls, query: Query) -> TrendQuery:
        _refuse_unknown(query, cls.__slots__)
        model = _needed(query, "model")
        return cls(
            model=model,
            gpu=_needed(query, "gpu"),
            precision=_choice(query, "precision", PRECISIONS, "fp32"),
            optimizer=_choice(query, "optimizer", OPTIMIZERS, "adamw"),
            mode=_choice(query, "mode", MODES, "train"),
            gradient_checkpointing=_flag(query, "gradient_checkpointing"),
            pretrained=_flag(query, "pretrained"),
            input_size=_count(query, "input_size") or default_input_size(model),
            memory_limit_bytes=_count(query, "memory_limit_bytes"),
        )

    @classmethod
    def of_run(cls, spec: Mapping[str, Any], gpu: str) -> TrendQuery:
        """The series a stored run belongs to."""
        size = spec.get("sequence_length") or spec.get("image_size") or default_input_size(spec["model"])
        return cls(
            model=spec["model"],
            gpu=gpu,
            precision=spec["precision"],
            optimizer=spec["optimizer"],
            mode=spec.get("mode", "train"),
            gradient_checkpointing=bool(spec.get("gradient_checkpointing")),
            pretrained=bool(spec.get("pretrained")),
            input_size=size,
            memory_limit_bytes=spec.get("memory_limit_bytes"),
        )

    @property
    def address(self) -> str:
        """As the query of an address; what is a default is left out."""
        plain = TrendQuery(self.model, self.gpu, input_size=default_input_size(self.model))
        values = {name: getattr(self, name) for name in self.__slots__}
        told = {n: v for n, v in values.items() if n in ("model", "gpu") or v != getattr(plain, n)}
        return "?" + urlencode({n: "1" if v is True else v for n, v in told.items() if v not in (None, False)})


def default_input_size(model: str) -> int | None:
    """What a run of the model takes without being asked; None for a model that is no longer offered."""
    return WORKLOADS[model].default_input_size if model in WORKLOADS else None


def _refuse_unknown(query: Query, allowed: tuple[str, ...]) -> None:
    for name in query:
        if name not in allowed:
            raise BadQuery(str(name)[:40], f"is not a parameter here; there are {', '.join(allowed)}")


def _ids(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    wrong = next((word for word in words if not _is_id(word)), None)
    if wrong is not None:
        raise BadQuery("ids", f"{wrong[:40]!r} is not the number of a run")
    ids = tuple(dict.fromkeys(map(int, words)))
    if len(ids) < 2:
        raise BadQuery("ids", "name at least two different runs, such as ids=3,8")
    if len(ids) > COMPARED_MAX:
        raise BadQuery("ids", f"names {len(ids)} runs; at most {COMPARED_MAX} are compared at once")
    return ids


def _is_id(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 20 and 0 < int(word) <= _LARGEST_ID


def _baseline(word: str | None, ids: tuple[int, ...]) -> int | None:
    if not word:
        return None
    if not _is_id(word) or int(word) not in ids:
        raise BadQuery("baseline", f"{word[:40]!r} is not one of the runs compared ({', '.join(map(str, ids[:10]))})")
    return int(word)


def _scale(query: Query, name: str, default: str) -> str:
    return _choice(query, name, SCALES, default)


def _choice(query: Query, name: str, allowed: tuple[str, ...], default: str) -> str:
    word = query.get(name) or default
    if word not in allowed:
        raise BadQuery(name, f"{word[:40]!r} is not one of {', '.join(allowed)}")
    return word


def _needed(query: Query, name: str) -> str:
    word = (query.get(name) or "").strip()
    if not word:
        raise BadQuery(name, "is needed")
    return word


def _flag(query: Query, name: str) -> bool:
    return _choice(query, name, ("0", "1"), "0") == "1"


def _count(query: Query, name: str) -> int | None:
    word = query.get(name)
    if not word:
        return None
    if not _is_id(word):
        raise BadQuery(name, f"{word[:40]!r} is not a whole number above 0")
    return int(word)
