"""PURE: a config's text with another number at one key: it is read, never run, and only the digits are replaced.

A key is written with dots, `train.batch_size`; an entry of a list by its number, `stages.0.batch_size`.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, reduce
from itertools import accumulate
from operator import getitem
from pathlib import PurePath
from typing import Any

_DIGITS = re.compile(r"\+?[1-9][0-9_]*")
_WHOLE_NUMBER_OF_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d+)(?![\d.eE])|-?\d[\d.eE+-]*')
_SENTINEL = "memorymark-puts-the-size-here"
_COMPARED, _NAMED, _SHOWN = 5_000, 3, 40


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a config that holds no others; `place` is where its digits are, None for no whole number from 1 on."""

    key: str
    text: str
    place: slice | None


def named_in(part: str, file: str) -> str:
    """Return the file's name in a part of a command: the whole part, or the text after its first or last `=`."""
    named = (part, part.partition("=")[2], part.rpartition("=")[2])
    return next((each for each in named if each and PurePath(each) == PurePath(file)), "")


def with_number(text: str, suffix: str, key: str, size: int) -> str:
    """Return the config with `size` at the key. Raises ValueError where it has no whole number there."""
    place = _place(text, suffix, key)
    return f"{text[: place.start]}{size}{text[place.stop :]}"


def number_in(text: str, suffix: str, key: str) -> int:
    """Return the number at the key. Raises ValueError where there is no whole number."""
    return int(text[_place(text, suffix, key)])


@lru_cache(maxsize=1)  # each start copies the same text
def _place(text: str, suffix: str, key: str) -> slice:
    if (read := _READERS.get(suffix.lower())) is None:
        raise ValueError(f"is none of {', '.join(_READERS)}")
    try:
        values = list(read(text, key))
    except (RecursionError, MemoryError) as exc:  # Python's parser says that it is out of memory
        raise ValueError("is nested too deeply to be read") from exc
    found = [each for each in values if each.key == key]
    if not found:
        keys = list(dict.fromkeys(each.key for each in values if each.place))[:_COMPARED]
        nearest = ", ".join(get_close_matches(key, keys, n=_NAMED, cutoff=0.0))
        raise ValueError(f"has no {key}; {f'nearest: {nearest}' if nearest else 'it holds no whole number'}")
    if len(found) > 1:
        raise ValueError(f"sets {key} {len(found)} times: which of them counts is not known")
    place = found[0].place
    if place is None or not _DIGITS.fullmatch(text[place]):
        raise ValueError(f"{key} is {(text[place] if place else found[0].text)[:_SHOWN]!r}, no whole number")
    return place


def _values_of_yaml(text: str, _: str) -> Iterator[_Value]:
    """Read a YAML document. A value behind an alias counts once, where it is written."""
    import yaml

    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # in C: five times as fast
    except yaml.YAMLError as exc:
        raise ValueError(f"is no YAML that can be read: {' '.join(str(exc).split())}") from exc
    seen: set[int] = set()

    def walk(node: Any, path: tuple[str, ...]) -> Iterator[_Value]:
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                yield from walk(value, (*path, str(name.value)))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                yield from walk(value, (*path, str(number)))
        elif node is not None:
            # the digits end where the node ends; an anchor or a tag may stand before them
            end = node.end_mark.index
            place = slice(end - len(node.value), end)
            is_number = not node.style and _DIGITS.fullmatch(node.value) and text[place] == node.value
            yield _Value(".".join(path), node.value, place if is_number else None)

    yield from walk(root, ())


def _values_of_json(text: str, _: str) -> Iterator[_Value]:
    """Read JSON, whose reader meets the whole numbers in the order in which they stand in the text."""
    numbers = (slice(*found.span(1)) for found in _WHOLE_NUMBER_OF_JSON.finditer(text) if found[1])
    try:
        # an object becomes a tuple of pairs, as it may set a key twice
        values = json.loads(text.removeprefix("\ufeff"), parse_int=lambda _: next(numbers), object_pairs_hook=tuple)
    except json.JSONDecodeError as exc:
        raise ValueError(f"is no JSON that can be read: {exc}") from exc
    for path, value in _leaves(values, ()):
        yield _Value(".".join(map(str, path)), str(value), value if isinstance(value, slice) else None)


def _values_of_toml(text: str, key: str) -> Iterator[_Value]:
    """Read TOML. The place of a value is looked for at the key alone, as each takes a walk through all of the text."""
    try:
        values = tomllib.loads(text)
    except ValueError as exc:
        raise ValueError(f"is no TOML that can be read: {exc}") from exc
    for path, value in _leaves(values, ()):
        name, is_number = ".".join(map(str, path)), type(value) is int and value >= 1
        place = _place_in_toml(text, path) if is_number and name == key else slice(0)
        yield _Value(name, str(value), place if is_number else None)


def _place_in_toml(text: str, path: tuple[str | int, ...]) -> slice:
    """Put a text in place of a value, to see where it stands: tomlkit writes a document as it was."""
    import tomlkit

    document: Any = tomlkit.parse(text)
    reduce(getitem, path[:-1], document)[path[-1]] = _SENTINEL
    before, _, after = document.as_string().partition(f'"{_SENTINEL}"')
    return slice(len(before), len(text) - len(after))


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else value
    if pairs is value and not isinstance(value, tuple):
        yield path, value
        return
    for name, below in pairs:
        yield from _leaves(below, (*path, name))


def _values_of_python(text: str, _: str) -> Iterator[_Value]:
    """Read what Python assigns: names, attributes, items, and in them the keywords of calls and literal dicts."""
    try:
        tree = ast.parse(text)
    except SyntaxError as exc:
        raise ValueError(f"is no Python that can be read: {exc}") from exc
    lines = text.encode().splitlines(keepends=True)
    starts = [0, *accumulate(len(line.decode()) for line in lines)]

    def at(line: int, column: int) -> int:
        """Return the place of a mark of ast, which counts bytes in a line."""
        return starts[line - 1] + len(lines[line - 1][:column].decode())

    def walk(node: ast.expr, path: str) -> Iterator[_Value]:
        below = list(_parts_of(node))
        for name, part in below:
            yield from walk(part, f"{path}.{name}")
        if below or node.end_lineno is None or node.end_col_offset is None:
            return
        place = slice(at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset))
        is_number = isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 1
        yield _Value(path, text[place], place if is_number else None)

    for path, value in _assigned(tree, ""):
        yield from walk(value, path)


def _assigned(block: ast.AST, scope: str) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if name := _name_of(target):
                    yield f"{scope}{name}", node.value
        elif isinstance(node, ast.ClassDef):
            yield from _assigned(node, f"{scope}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from _assigned(node, scope)


def _name_of(target: ast.expr) -> str | None:
    """Return `config.train.batch_size` of a target, also where it is written `config["train"].batch_size`."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        above, name = _name_of(target.value), target.attr
    elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        above, name = _name_of(target.value), str(target.slice.value)
    else:
        return None
    return above and f"{above}.{name}"


def _parts_of(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Call):
        yield from ((each.arg, each.value) for each in node.keywords if each.arg)
    elif isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from ((str(name.value), value) for name, value in pairs if isinstance(name, ast.Constant))
    elif isinstance(node, ast.List | ast.Tuple):
        yield from ((str(number), value) for number, value in enumerate(node.elts))


_READERS = {
    ".yaml": _values_of_yaml,
    ".yml": _values_of_yaml,
    ".json": _values_of_json,
    ".toml": _values_of_toml,
    ".py": _values_of_python,
}
