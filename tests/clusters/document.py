"""The blocks of docs/clusters.md: what the tests run is what people read."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


def section(title: str) -> str:
    text = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n")[1].partition("\n## ")[0]


def blocks(title: str) -> list[tuple[str, str]]:
    return [(found["kind"], found["text"]) for found in _BLOCK.finditer(section(title))]
