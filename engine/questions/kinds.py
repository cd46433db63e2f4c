"""The kinds of a run: everything the engine knows of a kind stands in its row. A new kind is a new row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ..estimate.spec import EstimateSpec
from ..facts.run_kind import Question, Trained
from ..facts.run_kind import RunKind as RunKind
from ..recording.spec import WatchSpec
from ..settings.catalog.stored_workload import is_own_training
from ..settings.spec import RunSpec, measured_spec
from ..text.from_json import to_json
from ..trainings.script.faster.spec import OwnRaceSpec
from ..trainings.script.spec import FunctionSpec, TuneSpec, read_tuned_spec
from .answers.command import CommandFacts
from .answers.document import check_limits
from .answers.measurement import MeasurementFacts
from .answers.race import answer_of_own_race, answer_of_race
from .answers.sizes import answer_of_sizes
from .answers.validation import answer_of_validation
from .answers.watch import answer_of_watch
from .documents.estimated import Estimated
from .documents.measured import Measured
from .documents.raced import AnyRace, OwnRaced, Raced
from .documents.stored import check_schema
from .documents.validated import Validated
from .documents.watched import Watched
from .faster.spec import FasterSpec
from .validation.spec import ValidationSpec

T = TypeVar("T")
SpecOnDevice = RunSpec | TuneSpec | FunctionSpec | ValidationSpec | FasterSpec | OwnRaceSpec | WatchSpec
Spec = SpecOnDevice | EstimateSpec
Document = Measured | Estimated | Validated | AnyRace | Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class ByKind(Mapping[RunKind, T]):
    """A table with a row for each question, asked of a model and of a script: type checkers find what is missing."""

    size: tuple[T, T]
    faster: tuple[T, T]
    estimate: tuple[T]
    validation: tuple[T]
    watch: tuple[T]

    def __getitem__(self, kind: str) -> T:
        of = RunKind(kind)
        row: tuple[T, ...] = getattr(self, of.question)
        return row[-1 if of.trained is Trained.SCRIPT else 0]

    def __iter__(self) -> Iterator[RunKind]:
        return iter(RunKind)

    def __len__(self) -> int:
        return len(RunKind)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. `subcommand` is the engine's command for it, empty where there is none."""

    subcommand: str
    members: tuple[str, ...] = ()
    """Members that only documents of this question have."""
    searches: bool = False
    """Whether it searches the largest batch size on a device, so that its figures count as measured."""
    tells_unused: bool = False
    """Whether it measures what a training leaves of its device's memory."""
    uses_device: bool = True
    """Whether it waits for a device and holds it."""
    is_reported: bool = True
    """Whether another machine may report such a run."""


QUESTIONS = {
    Question.SIZE: Asked("", searches=True, tells_unused=True),
    Question.FASTER: Asked("faster", members=("at_today", "goal")),
    Question.ESTIMATE: Asked(
        "estimate", members=("estimates", "safe_batch_size"), uses_device=False, is_reported=False
    ),
    Question.VALIDATION: Asked("validate", members=("checks",)),
    Question.WATCH: Asked("watch", members=("process",), tells_unused=True),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A question about what trains; `read` takes documents of any version, `answer` works out what facts imply."""

    read_spec: Callable[[dict[str, Any]], Spec]
    read: Callable[[Mapping[str, Any]], Document]
    answer: Callable[[Mapping[str, Any]], Document]
    is_started_here: bool = True
    """Whether a portal starts such a run."""


_of_a_measurement = partial(answer_of_sizes, MeasurementFacts)
KINDS = ByKind(
    size=(
        Kind(measured_spec, Measured.from_dict, _of_a_measurement),
        Kind(read_tuned_spec, Measured.from_dict, partial(answer_of_sizes, CommandFacts)),
    ),
    faster=(
        Kind(FasterSpec.from_dict, Raced.from_dict, answer_of_race),
        Kind(OwnRaceSpec.of_document, OwnRaced.from_dict, answer_of_own_race, is_started_here=False),
    ),
    estimate=(Kind(EstimateSpec.from_dict, Estimated.from_dict, _of_a_measurement),),  # as a result it lacks members
    validation=(Kind(ValidationSpec.from_dict, Validated.from_dict, answer_of_validation),),
    watch=(Kind(WatchSpec.of_document, Watched.from_dict, answer_of_watch, is_started_here=False),),
)


def asked(kind: str) -> Asked:
    return QUESTIONS[RunKind(kind).question]


def subcommand(kind: str) -> str:
    return "tune" if RunKind(kind).trained is Trained.SCRIPT else asked(kind).subcommand


def kind_of(document: Mapping[str, Any]) -> RunKind:
    """Tell the kind by the document's members; without those of another question it is of batch sizes."""
    named = (question for question, each in QUESTIONS.items() if not document.keys().isdisjoint(each.members))
    spec = document.get("spec")
    is_own = isinstance(spec, Mapping) and is_own_training(spec)
    return RunKind.of(next(named, Question.SIZE), Trained.SCRIPT if is_own else Trained.MODEL)


def read_result(document: Mapping[str, Any]) -> Document:
    """Read the document of a result, of any kind and version. Raises ValueError, which names the member."""
    return KINDS[kind_of(document)].read(document)


def answer(document: Mapping[str, Any]) -> Document:
    """Return the result that a document's facts imply. Raises SpecError and ImpossibleFiguresError."""
    check_limits(document)
    check_schema(document)
    return KINDS[kind_of(document)].answer(document)


def as_stored(found: Document) -> dict[str, Any]:
    """Return the document of a result, as JSON has it."""
    return dict(to_json(found.to_dict()))


def answered(document: Mapping[str, Any]) -> dict[str, Any]:
    return as_stored(answer(document))
