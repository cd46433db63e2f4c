"""PURE: a configuration file as a list of keys with values and lines: YAML, JSON, or a command with options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import SpecError

FIELD = "file"
BYTES_MAX = 2**20
NODES_MAX = 20_000
"""A file of a training has a few hundred; an alias counts wherever it is used."""
_SHELL = (".sh", ".bash", ".slurm", ".sbatch", ".txt")
SUFFIXES = (".yaml", ".yml", ".json", *_SHELL)
_YAML = "tag:yaml.org,2002:"
_CONTAINERS = (f"{_YAML}map", f"{_YAML}seq")
_ASSIGNMENT = re.compile(r"""(?:export\s+)?([A-Za-z_]\w*)=(?:"([^"]*)"|'([^']*)'|([^\s;]*))\s*(?:#.*)?""")
_QUOTIENT = re.compile(r"\$\(expr ([\d /*]+)\)|\$\(\(([\d /*]+)\)\)")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value; keys within keys are joined by dots. `line` counts from 1."""

    key: str
    value: Any
    line: int


def refused(line: int, key: str, reason: str) -> SpecError:
    return SpecError(FIELD, f"line {line}: {key}: {reason}")


def text_of(path: Path, field: str = FIELD, most_bytes: int = BYTES_MAX) -> str:
    """Read a file that a person named. Raises SpecError where it is not there, too large or no text."""
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as exc:
        raise SpecError(field, f"{path} cannot be read: {exc.strerror}") from exc
    if len(content) > most_bytes:
        raise SpecError(field, f"{path} has more than {most_bytes:,} bytes: that is no configuration")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SpecError(field, f"{path} is no text in UTF-8") from exc


def is_command(text: str, name: str) -> bool:
    return name.endswith(_SHELL) or text.startswith("#!")


def entries_of(text: str, name: str) -> list[Entry]:
    """Return what the text of a file of this name says. Raises SpecError, naming the line, for anything else."""
    if is_command(text, name):
        return list(_of_command(text))
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)  # JSON is YAML
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise SpecError(FIELD, f"line {line}: this is no YAML: {exc.problem}") from exc
    except (yaml.YAMLError, RecursionError) as exc:
        raise SpecError(FIELD, f"this is no YAML: {str(exc)[:200]}") from exc
    if not isinstance(node, yaml.MappingNode):
        raise SpecError(FIELD, "has no keys: this is no configuration of a training")
    return list(_Reader().entries(node, "", 0))


class _Reader:
    def __init__(self) -> None:
        self._count, self._loader = 0, yaml.SafeLoader("")

    def entries(self, node: yaml.MappingNode, prefix: str, depth: int) -> Iterator[Entry]:
        for key_node, value_node in node.value:
            key, line = f"{prefix}{self._scalar(key_node)}", key_node.start_mark.line + 1
            yield Entry(key, self._value(value_node, depth), line)
            if isinstance(value_node, yaml.MappingNode):
                yield from self.entries(value_node, f"{key}.", depth + 1)

    def _value(self, node: yaml.Node, depth: int) -> Any:
        self._count += 1
        if self._count > NODES_MAX or depth > 20:
            raise SpecError(FIELD, f"line {node.start_mark.line + 1}: too much is nested here for a configuration")
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _CONTAINERS:
            raise _not_read(node)
        if isinstance(node, yaml.MappingNode):
            return {self._scalar(key): self._value(value, depth + 1) for key, value in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, depth + 1) for each in node.value]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise _not_read(node)
        if node.tag == f"{_YAML}str" and re.fullmatch(r"[+-]?\d+(?:\.\d+)?[eE][+-]?\d+", node.value):
            return float(node.value)  # YAML 1.1 reads 1e-5 as text
        try:
            return self._loader.construct_object(node)
        except yaml.YAMLError as exc:
            raise _not_read(node) from exc


def _not_read(node: yaml.Node) -> SpecError:
    return SpecError(FIELD, f"line {node.start_mark.line + 1}: {node.tag.removeprefix(_YAML)[:80]} is not read here")


def _of_command(text: str) -> Iterator[Entry]:
    """Read the options of a command: the first of a script that has any, with its variables put in."""
    variables: dict[str, str] = {}
    key, key_line, values = "", 0, list[str]()
    for line, content in enumerate(text.splitlines(), 1):
        if found := _ASSIGNMENT.fullmatch(content.strip()):
            variables[found[1]] = next((each for each in found.groups()[1:] if each is not None), "")
            continue
        content = _VARIABLE.sub(lambda name: variables.get(name[1], name[0]), content)
        content = _QUOTIENT.sub(lambda found: _quotient(found[1] or found[2]), content)
        for word in _words(content, line):
            if not word.startswith("--"):
                values.append(word)
                continue
            if key:
                yield Entry(key, _value_of(values), key_line)
            key, equals, value = word[2:].partition("=")
            key, key_line, values = key.replace("-", "_"), line, [value] if equals else []
        if key and not content.rstrip().endswith("\\"):
            break
    if not key:
        raise SpecError(FIELD, "has no command with options")
    yield Entry(key, _value_of(values), key_line)


def _quotient(text: str) -> str:
    """Work out "16 / 2", as scripts divide a batch by the number of GPUs."""
    value = 1
    for sign, number in re.findall(r"([/*]?)\s*(\d{1,9})", text):
        value = value // max(int(number), 1) if sign == "/" else value * int(number)
    return str(value)


def _words(content: str, line: int) -> list[str]:
    try:
        words = shlex.split(content.rstrip().removesuffix("\\"), comments=True)
    except ValueError as exc:
        raise SpecError(FIELD, f"line {line}: this is no command: {exc}") from exc
    return words


def _value_of(words: list[str]) -> Any:
    if not words:
        return True  # an option without a value is on
    values = [yaml.safe_load(each) if re.fullmatch(r"[\w.+-]+", each) else each for each in words]
    return values[0] if len(values) == 1 else values
