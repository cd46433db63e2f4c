"""What is requested: a training command or function, how the batch size gets in, and the limits of the search."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any, ClassVar, Self

from ...errors import SpecError
from ...program import IMPORTED_FROM, PROGRAM
from ...search.allowed_sizes import BUDGETS, AllowedSizes
from ...settings.catalog import WORKLOADS
from ...settings.rank_settings import check_compares
from ...settings.ranks.emulation import EmulatedRank, emulated_ranks, wrong_emulation
from ...settings.spec import RunSpec, check_reserve, check_start, shared_setting
from ...settings.spec_checks import check_settings, given_fields, not_offered
from ...settings.training_spec import check_device_name
from ...text.masking import HIDDEN, masked
from ...text.printable import is_line, printable
from .config_text import named_in
from .ranked_command import OWN_PYTHON, name_of, ranked_command, trained_on_ranks

BATCH_SIZE, OUT = "{batch_size}", "{out}"
"""Placeholders of a command: the batch size of a start, and a fresh folder of that start."""
BATCH_SIZE_PLACE = re.compile(r"\{batch_size(?:\*([1-9]\d{0,3}))?\}")
"""The batch size, or a multiple of it: for a script that divides by its ranks, so that each is given the size."""
VARIABLE, STEP_MODULE = "MEMORYMARK_BATCH_SIZE", "memorymark_step"
FUNCTION, TEMPLATE, CONFIG = "function", "template", "config"
BATCH_WAYS = {
    TEMPLATE: f"the command holds {BATCH_SIZE}",
    "hf": "per_device_train_batch_size of a Hugging Face Trainer is set",
    "dataloader": "the batch_size of each DataLoader is set",
    "steps": "the batch_size of the loader in memorymark.steps(loader) is set",
    "env": f"the command reads the environment variable {VARIABLE}",
    CONFIG: "the number in a config file is set: --batch-in FILE:KEY",
}
WAYS_BY_NAME = tuple(way for way in BATCH_WAYS if way not in (TEMPLATE, CONFIG))
"""Those that --batch names; the others follow from the command and from --batch-in."""
WARM = "warm"
STARTING_WAYS = ("process", WARM, "fork")
"""How a start of a function is made: a fresh process, a fork of a server that imported it, a fork of the program."""
TARGET = re.compile(r"[\w.]+:[\w.]+")
_PYTHON, _PYTHON_FLAGS = re.compile(r"python[0-9.]*"), re.compile(r"-[bBdEiIOPqRsSuvx]+")
PARTS_MOST, COMMAND_LENGTH_MOST, NAME_MOST, FUNCTION_MOST, PATH_MOST = 4_096, 200_000, 100, 300, 4_096


def with_batch_size(part: str, batch_size: int) -> str:
    """Return a part of a command with the batch size of a start.

    >>> with_batch_size("--total={batch_size*2}", 8)
    '--total=16'
    """
    return BATCH_SIZE_PLACE.sub(lambda found: str(batch_size * int(found[1] or 1)), part)


def function_command(function: str, python: str | None = None) -> tuple[str, ...]:
    if not TARGET.fullmatch(function):
        raise SpecError("function", f"{function[:80]!r} is no package.module:function")
    return (python or OWN_PYTHON, "-m", STEP_MODULE, function, BATCH_SIZE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The settings of a search over starts, whatever is started. Raises SpecError, naming the field."""

    device: str = shared_setting("device")
    current_batch_size: int = shared_setting("current_batch_size")
    memory_limit_bytes: int | None = shared_setting("memory_limit_bytes")
    start_batch_size: int | None = shared_setting("start_batch_size")
    max_batch_size: int = shared_setting("max_batch_size")
    time_budget_seconds: float = shared_setting("time_budget_seconds")
    soak_steps: int | None = shared_setting("soak_steps")
    reserve_fraction: float = shared_setting("reserve_fraction")
    reserve_bytes: int | None = shared_setting("reserve_bytes")
    price_per_hour_usd: float = shared_setting("price_per_hour_usd")
    hours_per_run: float = shared_setting("hours_per_run")
    runs_per_year: int = shared_setting("runs_per_year")
    sizes: str | None = None
    """Which sizes the script takes, as "multiple of 8", or what they count: "tokens"; None: any, or as errors teach."""
    compare_speed: bool = True
    """Train today's size and up to three others in turns: without it no size is recommended."""
    DERIVED: ClassVar[tuple[str, ...]]
    """Members of the document beside the fields."""
    starts_anew: ClassVar = True
    check_batch_size: ClassVar[None] = None
    """A training of somebody's own is always searched, never run at one size alone."""

    def __post_init__(self) -> None:
        check_settings(self)
        check_compares(self.compare_speed)
        check_device_name(self.device)
        check_start(self.start_batch_size, self.max_batch_size)
        check_reserve(self.reserve_bytes, self.memory_limit_bytes)
        self._check_texts(may_be_null=("sizes",))
        if (allowed := self.allowed_sizes) is not None and not allowed.at_most(self.max_batch_size):
            raise SpecError("sizes", f"allows no size up to the largest one, {self.max_batch_size:,}")

    @property
    def emulated_ranks(self) -> tuple[EmulatedRank, ...]:
        """The ranks that a device stands in for at each size; empty where the training's own are measured."""
        return ()

    @property
    def allowed_sizes(self) -> AllowedSizes | None:
        """The rule of `sizes`, if it is one. Raises SpecError where it is no budget either."""
        return None if self.sizes is None or self.sizes in BUDGETS else AllowedSizes.parse(self.sizes)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), **{name: getattr(self, name) for name in self.DERIVED}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Build a spec from JSON. Raises SpecError for an unknown key."""
        return cls(**given_fields(cls, data))

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> Self:
        """Read the spec of a result, without what follows from its fields. Raises SpecError."""
        return cls.from_dict({name: value for name, value in document.items() if name not in cls.DERIVED})

    def check_derived(self, document: Mapping[str, Any]) -> None:
        """Raise SpecError where a document says otherwise than what follows from the fields."""
        for name in self.DERIVED:
            if name in document and document[name] != getattr(self, name):
                raise SpecError(f"spec.{name}", f"must be {getattr(self, name)!r}")

    def _check_texts(self, *names: str, may_be_null: Sequence[str] = ()) -> None:
        """Raise SpecError unless each of these fields is text; a document may hold any JSON value there."""
        for name in (*names, *may_be_null):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name in may_be_null):
                raise SpecError(name, "must be text, or null" if name in may_be_null else "must be text")

    def _check_line(self, name: str, most: int) -> None:
        """Raise SpecError where a field is no line that a list, a mail or a terminal may show."""
        value = getattr(self, name)
        if value is not None and not is_line(value, most):
            raise SpecError(name, f"must be one line of 1 to {most} printable characters")


@dataclass(frozen=True, slots=True)
class TuneSpec(Limits):
    """One command to be tuned. Raises SpecError, naming the field, for anything not allowed."""

    DERIVED: ClassVar = ("model", "function")

    command: tuple[str, ...] = ()
    batch: str = TEMPLATE
    batch_in: str | None = None
    """FILE:KEY, where the command names that config file: each start is given a copy of it with its batch size."""
    whole_run: bool = False
    name: str | None = None
    """What the command is called in lists; its script's name where this is None."""
    directory: str | None = None
    """Where it is started; None: in the current folder."""
    emulate_ranks: int | None = None
    """One device stands in for ranks of so many, one after the other; None: the command's own ranks are measured."""
    rank: tuple[int, ...] | None = None
    """Those that it stands in for; None: the first two and the last."""
    communication_bytes: int | None = None
    """What the library that connects ranks would take on a card beside the allocator; None: as read of NCCL."""
    catalogue: Mapping[str, Any] | None = None
    """The settings of a model of the catalogue on several ranks, of which the command is made; None: of one's own."""

    def __post_init__(self) -> None:
        Limits.__post_init__(self)
        if self.catalogue is not None:
            if (trained := RunSpec.from_dict(self.catalogue)).ranks == 1:
                raise SpecError("catalogue", "is of several ranks: one device is measured without a command")
            object.__setattr__(self, "catalogue", trained_on_ranks(trained))
            object.__setattr__(self, "command", ranked_command(self.catalogue, BATCH_SIZE))
        self._check_texts("batch", may_be_null=("batch_in", "name", "directory"))
        for name, longest in (("name", NAME_MOST), ("directory", PATH_MOST), ("batch_in", PATH_MOST)):
            self._check_line(name, longest)
        if not self.command:
            raise SpecError("command", f"is missing: {PROGRAM} tune -- python train.py --batch-size {BATCH_SIZE}")
        if not isinstance(self.whole_run, bool):
            raise SpecError("whole_run", "must be true or false")
        check_length(self.command)
        self._check_ranks()
        if self.batch == FUNCTION:
            self._check_function()
            return
        self._check_way()
        self._check_config()

    def _check_ranks(self) -> None:
        """Raise SpecError unless the ranks can be emulated. Their starts say nothing of speed."""
        if wrong := wrong_emulation(self.emulate_ranks, self.rank, self.communication_bytes):
            raise SpecError(*wrong)
        if self.catalogue and self.emulate_ranks not in (None, self.catalogue["ranks"]):
            raise SpecError("emulate_ranks", f"must be the {self.catalogue['ranks']} ranks that are trained")
        if self.emulate_ranks is not None:
            object.__setattr__(self, "compare_speed", False)

    def _check_way(self) -> None:
        """Raise SpecError unless the batch size gets in, in one way."""
        if self.batch not in BATCH_WAYS:
            raise SpecError("batch", not_offered(self.batch, tuple(BATCH_WAYS)))
        if self.batch == TEMPLATE and not self.has_placeholder and self.batch_in is None:
            others = f"--batch {', '.join(WAYS_BY_NAME)}, or --batch-in FILE:KEY"
            raise SpecError("command", f"holds no {BATCH_SIZE}; put it where the batch size goes, or give {others}")
        if self.batch != TEMPLATE and self.has_placeholder:
            raise SpecError("batch", f"is {self.batch}, and the command holds {BATCH_SIZE} too: one of them only")

    def _check_config(self) -> None:
        """Raise SpecError unless the command names the config file that holds the batch size, if there is one."""
        if (self.batch == CONFIG) != (self.batch_in is not None):
            raise SpecError("batch_in", f"is needed with --batch {CONFIG}, and is not for another way")
        if self.config is None:
            return
        file, key = self.config
        if not file or not key:
            raise SpecError("batch_in", f"{self.batch_in!r} is no FILE:KEY, such as config.yaml:train.batch_size")
        if not any(named_in(part, file) or HIDDEN in part for part in self.command):
            raise SpecError("command", f"names no {file}; --batch-in puts a copy in its place")

    def _check_function(self) -> None:
        target = next((part for part in self.command[3:4] if TARGET.fullmatch(part)), None)
        if target is None or self.command[1:] != function_command(target)[1:]:
            raise SpecError("batch", "function is of --function package.module:function, not of a command")
        if self.batch_in is not None:
            raise SpecError("batch_in", "a function is called with its batch size: leave it out")
        if self.whole_run:
            raise SpecError("whole_run", "a function has no epoch that could be shortened")

    @property
    def has_placeholder(self) -> bool:
        return any(map(BATCH_SIZE_PLACE.search, self.command))

    def check_program(self) -> None:
        """Raise SpecError where the program to be started cannot be found here."""
        if shutil.which(self.program) is None:
            field = "python" if self.function else "command"
            raise SpecError(field, f"{self.program!r} is no program that can be found on this host")

    def check_script(self) -> None:
        """Raise SpecError where a Python's script is not there; of a launcher's arguments only it knows the script."""
        if not _PYTHON.fullmatch(PurePath(self.program).name):
            return
        script = next((part for part in self.command[1:] if not _PYTHON_FLAGS.fullmatch(part)), "-")
        is_known = not script.startswith("-") and OUT not in script and not BATCH_SIZE_PLACE.search(script)
        folder = Path(self.directory or Path.cwd())
        if is_known and not (folder / script).exists():
            raise SpecError("command", f"{script!r} is not in {folder}")

    @property
    def function(self) -> str | None:
        """The function that the command runs, as `package.module:function`; None for a command of somebody's own."""
        return self.command[3] if self.batch == FUNCTION else None

    @property
    def program(self) -> str:
        """What is started: the command's first word."""
        is_ours = self.command[0] == OWN_PYTHON and (self.function or self.catalogue)
        return sys.executable if is_ours else self.command[0]

    @property
    def model(self) -> str:
        """What is tuned, in a word: its name, else the function, the script, or the module after `-m`."""
        if self.name is not None or self.function is not None:
            return _own_name(self.name or self.function or "")
        if self.catalogue is not None:
            return name_of(self.catalogue)
        return name_of_command([part for part in self.command if not BATCH_SIZE_PLACE.search(part)] or self.command)

    @property
    def files(self) -> tuple[str, ...]:
        """Where its script may be found."""
        if self.function is None:
            return self.command
        module = self.function.partition(":")[0].replace(".", "/")
        return (f"{module}.py", f"{module}/__init__.py")

    @property
    def python_path(self) -> tuple[str, ...]:
        """Folders in which the command's Python finds modules, beside its own."""
        return (str(IMPORTED_FROM),) if self.catalogue else ()

    @property
    def emulated_ranks(self) -> tuple[EmulatedRank, ...]:
        return emulated_ranks(self.emulate_ranks, self.rank, self.communication_bytes)

    @property
    def config(self) -> tuple[str, str] | None:
        if self.batch_in is None:
            return None
        file, _, key = self.batch_in.rpartition(":")
        return file, key

    def arguments(self, batch_size: int, out: str, copy: str | None = None) -> list[str]:
        parts = self.arguments_by_hand(batch_size, out)
        if self.config is None or copy is None:
            return parts
        file, _ = self.config
        return [f"{part[: -len(named)]}{copy}" if (named := named_in(part, file)) else part for part in parts]

    def arguments_by_hand(self, batch_size: int, out: str) -> list[str]:
        """Return the command with its placeholders filled in. Other braces stay as they are."""
        parts = (self.program, *self.command[1:])
        return [with_batch_size(part, batch_size).replace(OUT, out) for part in parts]

    def to_dict(self) -> dict[str, Any]:
        return {**Limits.to_dict(self), "command": masked(self.command)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Build a spec from JSON. Raises SpecError, also for a command that is no list of texts."""
        given = given_fields(cls, data)
        command, rank = read_command(given.get("command", ())), given.get("rank")
        if rank is not None and not isinstance(rank, (list, tuple)):
            raise SpecError("rank", "must be a list of ranks, such as [0, 1, 7]")
        return cls(**{**given, "command": command, "rank": None if rank is None else tuple(rank)})


@dataclass(frozen=True, slots=True)
class FunctionSpec(Limits):
    """A function that returns what runs an optimizer step: `package.module:function`, or a notebook's by its name."""

    DERIVED: ClassVar = ("model", "batch")
    batch: ClassVar[str] = FUNCTION
    catalogue: ClassVar[None] = None
    directory: ClassVar[None] = None
    whole_run: ClassVar[bool] = False
    """A function has no epoch that could be shortened."""

    function: str
    starting: str = "process"
    script: str | None = None

    def __post_init__(self) -> None:
        Limits.__post_init__(self)
        self._check_texts("function", "starting", may_be_null=("script",))
        if not self.function:
            raise SpecError("function", "is empty; name the function that was tuned")
        self._check_line("function", FUNCTION_MOST)
        self._check_line("script", PATH_MOST)
        if self.starting not in STARTING_WAYS:
            raise SpecError("starting", f"{self.starting[:80]!r} is unknown; one of {', '.join(STARTING_WAYS)}")

    @property
    def model(self) -> str:
        return _own_name(self.function)

    @property
    def files(self) -> tuple[str, ...]:
        return () if self.script is None else (self.script,)

    @property
    def python_path(self) -> tuple[str, ...]:
        return tuple(entry for entry in sys.path if entry)

    def arguments(self, batch_size: int, *_: str | None) -> list[str]:
        return [sys.executable, "-m", STEP_MODULE, self.function, str(batch_size)]

    arguments_by_hand = arguments


def read_tuned_spec(document: Mapping[str, Any]) -> TuneSpec | FunctionSpec:
    is_function = "function" in document and "command" not in document
    return FunctionSpec.of_document(document) if is_function else TuneSpec.of_document(document)


def read_command(given: object) -> tuple[str, ...]:
    if not isinstance(given, (list, tuple)) or not all(isinstance(part, str) for part in given):
        raise SpecError("command", "must be a list of texts: the program and its arguments")
    return tuple(given)


def check_length(command: Sequence[str]) -> None:
    """Raise SpecError for a command that no program can be given, or that is too long for a report."""
    if any("\0" in part for part in command):
        raise SpecError("command", "holds a NUL character, which no program can be given")
    if len(command) > PARTS_MOST or sum(map(len, command)) > COMMAND_LENGTH_MOST:
        most = f"{PARTS_MOST:,} parts and {COMMAND_LENGTH_MOST:,} characters"
        raise SpecError("command", f"is longer than the {most} that a report may have: name a file of arguments")


def name_of_command(command: Sequence[str]) -> str:
    """Return what a command runs, in a word: its script, else the module after `-m`, else its program."""
    script = next((part for part in command if part.endswith(".py")), None)
    if script is not None:
        return _own_name(PurePath(script).name)
    after = next((command[i + 1] for i, part in enumerate(command[:-1]) if part == "-m"), None)
    return _own_name(after or PurePath(command[0]).name)


def _own_name(name: str) -> str:
    """Return a name in one line, which no list takes for the model of the catalogue that is called the same."""
    shown = printable(name, NAME_MOST) or "a training"
    return f"{shown} (own)" if shown in WORKLOADS else shown
