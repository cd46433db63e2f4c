"""One word for one thing: pages, help texts and documents use the words of docs/glossary.md and none of their rivals.

Names in the API, in JSON, in options and in code stay as they are, so code in a text is left out.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
RIVALS = {
    "GPU, device": r"\b(graphics )?cards?\b",
    "run; New run, Start": r"\b(new analysis|analy[sz]e another|measurement runs?)\b",
    "recommended; largest with the reserve": r"\b((?<!Pareto-)optimal|safe (batch )?sizes?|safety margin)\b",
    "ran out of memory": r"\b(batch|size|sample|probe|N ?\+ ?1|\d+)s? (was|is|were|are|would be) refused\b",
    "baseline": r"\breference runs?\b",
    "your script; registered command": r"\btraining commands?\b",
    "soak run": r"\blong runs?\b",
    "EMA of the weights": r"\b(?<!moving )average of (the|its)( trained)? weights\b",
    "4-bit base weights": r"\b(QLoRA|load_in_4bit)\b",
    "pure bf16": r"\bbf16 weights, gradients and optimi[sz]er\b",
    "Change and run": r"\bclon(e|ed|es|ing)\b",
    "your batch size today": r"(?<!your )\bbatch size today\b",
    "min": r"\b\d+ m \d+ s\b",
}
"""What to say, and what not to say for it."""
ALLOWED = {
    "Optimal batch size: ": "the classic block of the command line is a published contract",
    "(QLoRA)": "the name by which many know the method, in brackets",
    "known as QLoRA": "the same",
}
"""Phrases that hold a rival and may, with the reason."""
HELP_TEXTS = (
    *("engine/cli", "engine/describe", "engine/facts", "engine/settings", "engine/trainings/script/spec.py"),
    *("engine/questions/validation/spec.py", "analysis/pages", "analysis/presentation", "analysis/lists"),
)
_READ_OUT = re.compile(r'\b(?:aria-label|title|placeholder|alt|data-copy|content)="([^"]*)"')


class Text(NamedTuple):
    """What a person reads, with the place of its beginning."""

    file: str
    line: int
    text: str


def of_template(path: Path) -> Iterator[Text]:
    """The text between the tags, and what a screen reader reads out of their attributes."""
    source = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", path.read_text(encoding="utf-8"))
    source = re.sub(r"<(code|pre|script|style)\b.*?</\1>", _blank, source, flags=re.DOTALL)
    shown = re.sub(r"<[^>]*>", _attributes, source, flags=re.DOTALL)
    yield from _lines(path, shown)


def of_document(path: Path) -> Iterator[Text]:
    """Prose and tables; the table of the words themselves, code and addresses are left out."""
    source = path.read_text(encoding="utf-8")
    source = re.sub(r"\n## One word for one thing\n.*", "", source, flags=re.DOTALL)
    for code in (r"^```.*?^```", r"^    .*?$", r"<!--.*?-->", r"`[^`]*`", r"\]\([^)]*\)"):
        source = re.sub(code, _blank, source, flags=re.DOTALL | re.MULTILINE)
    yield from _lines(path, source)


def of_python(path: Path) -> Iterator[Text]:
    """The sentences of a module: literals with a space in them that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        text = _text_of(node)
        if text and id(node) not in silent:
            sentence = re.sub(r"`[^`]*`", " ", text)
            if " " in sentence.strip():
                yield Text(str(path.relative_to(ROOT)), node.lineno, sentence)


def _text_of(node: ast.AST) -> str:
    """Return a literal, or an f-string with 1 in place of each value: "Batch 1 was refused 1"."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
    return ""


def _lines(path: Path, text: str) -> Iterator[Text]:
    for number, line in enumerate(text.splitlines(), start=1):
        yield Text(str(path.relative_to(ROOT)), number, line)


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n") or " "


def _attributes(found: re.Match[str]) -> str:
    return f"{' '.join(_READ_OUT.findall(found[0]))} {_blank(found)}"


def texts() -> dict[str, list[Text]]:
    """All that people read, by where it stands."""
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    modules = [path for name in HELP_TEXTS for path in (sorted((ROOT / name).rglob("*.py")) or [ROOT / name])]
    return {
        "templates": [text for path in sorted((ROOT / "templates").rglob("*.html")) for text in of_template(path)],
        "help texts": [text for path in modules if path.is_file() for text in of_python(path)],
        "documents": [text for path in documents for text in of_document(path)],
    }


def broken(text: Text) -> Iterator[str]:
    """Yield "docs/tune.md:12: cards; say GPU, device" for each rival in this text."""
    said = text.text
    for phrase in ALLOWED:
        said = re.sub(re.escape(phrase), "", said, flags=re.IGNORECASE)
    for say, rival in RIVALS.items():
        if found := re.search(rival, said, re.IGNORECASE):
            yield f"{text.file}:{text.line}: {found[0]}; say {say}"


@pytest.mark.parametrize("kind", ["templates", "help texts", "documents"])
def test_no_text_says_another_word_than_the_glossarys(kind: str) -> None:
    found = [line for text in texts()[kind] for line in broken(text)]
    assert not found, "\n".join(found)


def test_the_test_can_fail() -> None:
    said = Text("x", 1, "Two graphics cards: the optimal size; batch 61 was refused after 5 m 51 s (QLoRA)")
    assert len([*broken(said)]) == 4
    assert [*broken(Text("x", 1, "The Pareto-optimal points"))] == []
    assert [*broken(Text("x", 1, "your batch size today"))] == []
    assert len([*broken(Text("x", 1, "Batch size today"))]) == 1


def test_the_sentences_with_values_in_them_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "words.py"
    module.write_text('def say(size): return f"Batch {size} was refused {size} bytes"\n')
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    assert [line for text in of_python(module) for line in broken(text)]


def test_each_exception_holds_a_rival() -> None:
    assert [phrase for phrase in ALLOWED if not any(re.search(r, phrase, re.IGNORECASE) for r in RIVALS.values())] == []


def test_the_glossary_names_each_word_to_say() -> None:
    table = (ROOT / "docs" / "glossary.md").read_text().split("## One word for one thing")[1]
    missing = [say for say in RIVALS if not all(word.strip() in table for word in re.split("[;,]", say))]
    assert missing == []
