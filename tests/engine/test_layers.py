"""Imports go one way, nothing above the torch line loads torch, and the table of kinds names what is there."""

import ast
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from engine.cli.main import COMMANDS
from engine.errors import SpecError
from engine.questions.kinds import KINDS, RunKind, answered, subcommand
from engine.questions.validation.spec import ValidationSpec

ROOT = Path(__file__).resolve().parents[2]
TORCH_SIDE = {
    f"measurement.{name}"
    for name in (
        *("attribution", "batches", "checkpointing", "compiling", "device", "environment", "language_model_loss"),
        *("losses", "module_scopes", "optimizers", "probe", "quantization", "ranked_training", "ranks", "step"),
        *("timing", "torchvision_schemas", "traced_step", "workloads"),
    )
}
TORCH_SIDE |= {"demo", "questions.validation.measure", "estimate.measure_calibration", "settings.ranks.emulated_group"}
TORCH_SIDE |= {
    f"estimate.tracing.{name}"
    for name in ("attention", "fake_cuda", "fake_tensors", "onednn", "ranks", "recorder", "trace")
}
HOOK = ROOT / "engine" / "trainings" / "script" / "hook"  # runs inside the training of somebody else
OWN_FILES = [path for path in (ROOT / "engine").rglob("*.py") if path.parent != HOOK]
TORCH_FREE = sorted({".".join(p.relative_to(ROOT / "engine").with_suffix("").parts) for p in OWN_FILES} - TORCH_SIDE)
MOST_FILES = 25  # of a folder, so that its list is read at a glance
LONGEST_FUNCTION, MOST_ATTRIBUTES = 60, 15
LONGEST_TEMPLATE_LINE = 160
FORBIDDEN = {
    "engine": {"django", "rest_framework", "django_q", "analysis", "memorymark_site"},
    "analysis": {"torch", "torchvision", "transformers", "memorymark_site"},
    "memorymark_site": {"torch", "torchvision", "transformers"},
}


def imported(path: Path) -> set[str]:
    """The top-level packages a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_file_imports_against_the_direction(package):
    offenders = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / package).rglob("*.py")
        for name in imported(path) & FORBIDDEN[package]
    }
    assert not offenders


def test_the_document_of_the_architecture_shows_the_order_that_is_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    shown = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    for contract in contracts:
        for package in contract.get("containers", ()):
            assert f"{package}/ {' > '.join(contract['layers']).replace(' |', ',')}" in shown


def test_the_hook_needs_nothing_but_python_and_its_own_files() -> None:
    known = sys.stdlib_module_names | {path.stem for path in HOOK.glob("*.py")}
    assert {name for path in HOOK.glob("*.py") for name in imported(path)} <= known


def test_nothing_above_the_torch_line_loads_torch():
    modules = ", ".join(f"engine.{name}" for name in TORCH_FREE if "__" not in name)
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules or 'django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.each_value
@pytest.mark.parametrize("package", ["engine", "analysis", "memorymark_site", "benchmarks", "tests"])
def test_no_file_is_longer_than_400_lines_and_every_module_says_what_it_is(package):
    for path in (ROOT / package).rglob("*.py"):
        if "migrations" in path.parts or not path.read_text().strip():
            continue
        assert len(path.read_text().splitlines()) <= 400, path
        assert ast.get_docstring(ast.parse(path.read_text())), path


def attributes(node: ast.ClassDef) -> set[str]:
    """Its fields, and the names that its methods assign on self."""
    fields = {ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)}
    stored = [each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)]
    return fields | {each.attr for each in stored if ast.unparse(each.value) == "self"}


def is_record(node: ast.ClassDef) -> bool:
    """Whether it never changes: it has as many fields as the document, the table or the settings that it stands for."""
    return any("frozen=True" in ast.unparse(each) for each in node.decorator_list)


@pytest.mark.each_value
@pytest.mark.parametrize("package", ["engine", "analysis", "memorymark_site"])
def test_functions_and_classes_can_be_taken_in_at_a_glance(package):
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())) if "migrations" not in path.parts else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno - node.lineno < LONGEST_FUNCTION, f"{path}:{node.name}"
            if isinstance(node, ast.ClassDef) and not is_record(node):
                assert len(attributes(node)) <= MOST_ATTRIBUTES, f"{path}:{node.name}"


@pytest.mark.parametrize(("root", "pattern"), [("engine", "*.py"), ("analysis", "*.py"), ("templates", "*.*")])
def test_no_folder_holds_more_than_25_files(root, pattern):
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in (ROOT / root).rglob(pattern))
    assert [folder for folder, count in folders.items() if count > MOST_FILES] == []


def test_no_line_of_a_template_is_longer_than_160_characters():
    for path in (ROOT / "templates").rglob("*.*"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line) <= LONGEST_TEMPLATE_LINE, f"{path}:{number}"


def test_the_subcommand_of_each_kind_is_one_of_the_command_line() -> None:
    assert set(map(subcommand, RunKind)) <= {"", *COMMANDS}


def test_each_kind_reads_its_own_spec() -> None:
    spec = ValidationSpec("bert-tiny")
    assert KINDS[RunKind.VALIDATION].read_spec(spec.to_dict()) == spec
    with pytest.raises(SpecError, match="check"):
        KINDS[RunKind.MEASUREMENT].read_spec(spec.to_dict())


def test_an_estimate_is_no_result_of_another_machine() -> None:
    with pytest.raises(SpecError, match="is missing"):
        answered({"schema": 1, "estimates": [], "spec": {}})
