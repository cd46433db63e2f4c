"""The names of the kinds of a run: each is a question about a training. `kinds` has what the engine knows of each."""

from __future__ import annotations

from enum import StrEnum, auto


class Question(StrEnum):
    """What a run asks. Races, validations and watches search no batch size: nothing counts them as measurements."""

    SIZE = auto()
    FASTER = auto()
    ESTIMATE = auto()
    VALIDATION = auto()
    WATCH = auto()


class Trained(StrEnum):
    """What trains: a model of the catalogue, or a training command or function of somebody's own."""

    MODEL = auto()
    SCRIPT = auto()


class RunKind(StrEnum):
    """A question about what trains, as runs, documents and the API name it."""

    question: Question
    trained: Trained

    def __new__(cls, name: str, question: Question = Question.SIZE, trained: Trained = Trained.MODEL) -> RunKind:
        kind = str.__new__(cls, name)
        kind._value_, kind.question, kind.trained = name, question, trained
        return kind

    MEASUREMENT = "measurement"
    COMMAND = "command", Question.SIZE, Trained.SCRIPT
    ESTIMATE = "estimate", Question.ESTIMATE
    VALIDATION = "validation", Question.VALIDATION
    RACE = "race", Question.FASTER
    OWN_RACE = "own_race", Question.FASTER, Trained.SCRIPT
    WATCH = "watch", Question.WATCH, Trained.SCRIPT

    @classmethod
    def of(cls, question: Question, trained: Trained) -> RunKind:
        """Return the kind of a question; where the question is asked of one of the two alone, the kind of that."""
        kinds = [kind for kind in cls if kind.question is question]
        return next((kind for kind in kinds if kind.trained is trained), kinds[0])

    @property
    def label(self) -> str:
        return self.replace("_", " ").capitalize()
