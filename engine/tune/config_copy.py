"""PURE: a config's text with another number at one key, and not one other character changed.

YAML, JSON, TOML and Python are read, never run: the place of the value is found, and only its digits are replaced.
A key is written with dots, `train.batch_size`; an entry of a list by its number, `stages.0.batch_size`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any

_DIGITS = re.compile(r"\+?[1-9][0-9_]*")
_SENTINEL = "memorymark-puts-the-size-here"
_NAMED, _SHOWN = 3, 40


@dataclass(frozen=True, slots=True)
class _Value:
    """One value of a config that holds no others: its key, as it is written, and where its digits are.

    `place` is None where it is no whole number of at least 1.
    """

    key: str
    text: str
    place: slice | None


def named_in(part: str, file: str) -> str:
    """Return what names the file in a part of a command: all of it, or what stands behind its first or last `=`."""
    named = (part, part.partition("=")[2], part.rpartition("=")[2])
    return next((each for each in named if each and PurePath(each) == PurePath(file)), "")


def with_number(text: str, suffix: str, key: str, size: int) -> str:
    """Return the config with `size` at the key. Raises ValueError where it has no whole number there."""
    place = _place(text, suffix, key)
    return f"{text[: place.start]}{size}{text[place.stop :]}"


def number_in(text: str, suffix: str, key: str) -> int:
    """Return the number at the key. Raises ValueError where there is no whole number."""
    return int(text[_place(text, suffix, key)], 0)


def _place(text: str, suffix: str, key: str) -> slice:
    if (read := _READERS.get(suffix.lower())) is None:
        raise ValueError(f"is none of {', '.join(_READERS)}")
    values = list(read(text))
    found = [each for each in values if each.key == key]
    if not found:
        keys = list(dict.fromkeys(each.key for each in values if each.place))
        nearest = ", ".join(get_close_matches(key, keys, n=_NAMED, cutoff=0.0))
        raise ValueError(f"has no {key}; {f'nearest: {nearest}' if nearest else 'it holds no whole number'}")
    if len(found) > 1:
        raise ValueError(f"sets {key} {len(found)} times: which of them counts is not known")
    if (place := found[0].place) is None:
        raise ValueError(f"{key} is {found[0].text[:_SHOWN]!r}, no whole number")
    return place


def _values_of_yaml(text: str) -> Iterator[_Value]:
    """Read a YAML document. A value behind an alias counts once, where it is written."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
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
            is_number = node.style is None and _DIGITS.fullmatch(node.value) and text[place] == node.value
            yield _Value(".".join(path), node.value, place if is_number else None)

    yield from walk(root, ())


def _values_of_json(text: str) -> Iterator[_Value]:
    """Read JSON as YAML, which takes it but for tabs; in JSON these stand between values alone."""
    return _values_of_yaml(text.replace("\t", " "))


def _values_of_toml(text: str) -> Iterator[_Value]:
    """Read TOML: tomlkit writes a document as it was, so a text put in place of a number shows where that stands."""
    import tomlkit

    try:
        values, document = tomllib.loads(text), tomlkit.parse(text)
    except ValueError as exc:
        raise ValueError(f"is no TOML that can be read: {exc}") from exc
    for path, value in _leaves(values, ()):
        key = ".".join(map(str, path))
        if type(value) is not int or value < 1:
            yield _Value(key, str(value), None)
            continue
        holder: Any = document
        for name in path[:-1]:
            holder = holder[name]
        number, holder[path[-1]] = holder[path[-1]], _SENTINEL
        before, _, after = document.as_string().partition(f'"{_SENTINEL}"')
        holder[path[-1]] = number
        place = slice(len(before), len(text) - len(after))
        is_found = text.startswith(before) and text.endswith(after) and _DIGITS.fullmatch(text[place])
        yield _Value(key, text[place], place if is_found else None)


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _leaves(below, (*path, name))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from _leaves(below, (*path, number))
    else:
        yield path, value


def _values_of_python(text: str) -> Iterator[_Value]:
    """Read what Python assigns: names, attributes, items, and in them the keywords of calls and literal dicts."""
    try:
        tree = ast.parse(text)
    except SyntaxError as exc:
        raise ValueError(f"is no Python that can be read: {exc}") from exc
    data = text.encode()
    lines = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", data))]

    def at(line: int, column: int) -> int:
        """Return the place of a mark of ast, which counts bytes in a line."""
        return len(data[: lines[line - 1] + column].decode())

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
    """Yield each target with its value; those of a class below its name, those of a function by their own."""
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
    """Yield what a value consists of: the keywords of a call, the entries of a literal dict, list or tuple."""
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
