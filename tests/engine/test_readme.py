"""The Python of the README and the documents runs as it stands; the worker alone is a fake one with a made-up curve."""

import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from engine import public
from tests.engine.fake_worker import FakeWorker

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DOCUMENTS = (README, ROOT / "packaging" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def python_of(document: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    memorymark = ModuleType("memorymark")
    vars(memorymark).update({name: getattr(public, name) for name in public.__all__})
    vars(memorymark)["measure"] = partial(public.measure, worker=FakeWorker(60), estimates=False)
    monkeypatch.setitem(sys.modules, "memorymark", memorymark)


def test_the_lines_of_python_in_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = python_of(README)
    exec(compile(source, "README.md", "exec"), {})
    *live, largest, recommended = capsys.readouterr().out.splitlines()
    assert any("batch 60 fits: " in line for line in live)
    assert largest == "largest 60, certified: True"
    assert recommended.startswith("recommended ")


def test_the_cells_of_a_notebook_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for source in python_of(ROOT / "docs" / "clusters.md"):
        exec(compile(source, "clusters.md", "exec"), names)
    assert '"largest_batch_size": 60' in (tmp_path / "bert-tiny.json").read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_example_imports_what_only_a_checkout_has(document: Path) -> None:
    imported = re.findall(r"^\s*(?:from|import) (\w+)", "\n".join(python_of(document)), re.MULTILINE)
    assert "engine" not in imported
