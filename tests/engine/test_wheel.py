"""The package in environments of its own: the wheel as a tool without torch and beside one, and a checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SCRIPTS = Path(__file__).parent / "trainings" / "script" / "scripts"
NOT_PACKAGED = {"DJANGO_SETTINGS_MODULE", "PYTHONPATH"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in NOT_PACKAGED}
TUNE = ("tune", "--device", "cpu", "--json", "--max", "24", "--current-batch-size", "24")


def test_every_package_of_the_engine_is_in_the_wheel() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "engine").rglob("*.py")}
    expected = {"memorymark", *(f"memorymark.{'.'.join(folder.parts)}" for folder in folders)}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == expected


def test_every_file_of_the_engine_that_is_no_python_is_in_the_wheel() -> None:
    others = [path for path in (ROOT / "engine").rglob("*.*") if path.suffix not in (".py", ".pyc")]
    packages = {f"memorymark.{'.'.join(path.parent.relative_to(ROOT).parts)}": f"*{path.suffix}" for path in others}
    data = PROJECT["tool"]["setuptools"]["package-data"]
    assert packages
    assert all(pattern in data.get(package, []) for package, pattern in packages.items())


def test_the_version_pins_of_the_wheel_hold_for_what_is_tested() -> None:
    tested = (ROOT / "requirements.txt").read_text()
    needed = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["models"]
    for name in (re.split(r"[^\w-]", each)[0] for each in needed):
        assert re.search(rf"^{name}[=~]=", tested, re.MULTILINE), name


def run(*command: object, status: int = 0, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == status, done.stdout[-1_000:] + done.stderr[-3_000:]
    return done.stdout + (done.stderr if status else "")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(ROOT / "scripts" / "build-wheel", folder)
    (built,) = folder.glob("*.whl")
    return built


def environment(folder: Path, *packages: object) -> Path:
    """Make a new environment with a package and what it requires; its folder of programs."""
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return folder / "bin"


@pytest.fixture(scope="module")
def tool(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of the tool alone, as pipx makes one: no torch."""
    return environment(tmp_path_factory.mktemp("tool"), wheel)


@pytest.fixture(scope="module")
def beside_torch(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and this environment's torch, but not the checkout."""
    programs = environment(tmp_path_factory.mktemp("training"), wheel)
    (site_packages,) = programs.parent.glob("lib/python*/site-packages")
    (site_packages / "this_environment.pth").write_text(sysconfig.get_path("purelib"))
    return programs


@pytest.mark.slow
def test_the_tool_lists_and_estimates_and_says_what_it_lacks(tool: Path, tmp_path: Path) -> None:
    assert run(tool / "memorymark", "--version", cwd=tmp_path).startswith("MemoryMark ")
    assert "a100-80gb" in run(tool / "memorymark", "gpus", cwd=tmp_path)
    assert "of 34 GPUs" in run(tool / "memorymark", "estimate", "bert", "--gpu", "all", cwd=tmp_path)
    assert "First choice" in run(tool / "memorymark", "fit", "gpt2-lm", "--batch-size", "8", cwd=tmp_path)
    assert "Usage: memorymark tune" in run(tool / "memorymark", "tune", "--help", cwd=tmp_path)
    assert "python -m engine" not in run(tool / "memorymark", "--help", cwd=tmp_path)
    for command in (("bert-tiny", "cpu"), ("devices",), ("estimate", "bert-tiny", "--gpu", "cpu")):
        assert "torch is not installed" in run(tool / "memorymark", *command, status=1, cwd=tmp_path)


@pytest.mark.slow
def test_the_tool_measures_a_script_of_another_environment_that_has_an_engine_of_its_own(
    tool: Path, tmp_path: Path
) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("mine = True\n")
    script = (
        "import sys, engine\nassert engine.mine and 'memorymark' not in sys.modules and 'msgspec' not in sys.modules\n"
    )
    (tmp_path / "train.py").write_text(script + (SCRIPTS / "ten_lines.py").read_text())
    command = (*TUNE, "--", sys.executable, "train.py", "{batch_size}")
    result = json.loads(run(tool / "memorymark", *command, cwd=tmp_path))
    assert result["boundary"]["largest_batch_size"] == 24


@pytest.mark.slow
def test_the_command_of_a_checkout_answers_where_python_m_engine_would_run_another_program(tmp_path: Path) -> None:
    (checkout := tmp_path / "memorymark").mkdir()
    for folder in ("engine", "packaging"):
        shutil.copytree(ROOT / folder, checkout / folder)
    for file in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / file, checkout)
    programs = environment(tmp_path / "venv", "-e", checkout)
    (detection := tmp_path / "detection").mkdir()
    (detection / "engine.py").write_text("print('the training loop of torchvision')\n")
    shutil.copy(SCRIPTS / "ten_lines.py", detection / "train.py")
    command = (*TUNE, "--", sys.executable, "train.py", "{batch_size}")
    result = json.loads(run(programs / "memorymark", *command, cwd=detection))
    assert result["boundary"]["largest_batch_size"] == 24
    where = "from memorymark.engine.program import *; print(PROGRAM, IMPORTED_FROM)"
    assert run(programs / "python", "-c", where, cwd=detection) == f"memorymark {checkout / 'packaging'}\n"


@pytest.mark.slow
@pytest.mark.nightly
def test_both_other_doors_are_open_beside_a_torch(beside_torch: Path, tmp_path: Path) -> None:
    for name in ("one_line.py", "program.py"):
        text = (SCRIPTS / name).read_text()
        (tmp_path / name).write_text(text.replace("from engine.public import", "from memorymark import"))
    command = (*TUNE, "--batch", "steps", "--", beside_torch / "python", "one_line.py")
    result = json.loads(run(beside_torch / "memorymark", *command, cwd=tmp_path))
    assert result["boundary"]["largest_batch_size"] == 24
    result = json.loads(run(beside_torch / "python", "program.py", "make_step", "8MiB", cwd=tmp_path))
    assert result["boundary"]["certified"]
    tune = "import memorymark; print(memorymark.tune('program:make_step', device='cpu', memory_limit='8MiB', "
    tune += "current_batch_size=24, max_batch_size=24, emit=id).largest_batch_size)"
    assert run(beside_torch / "python", "-c", tune, cwd=tmp_path) == "24\n"


@pytest.mark.slow
@pytest.mark.nightly
def test_a_model_of_the_catalogue_is_measured_by_the_wheel(beside_torch: Path, tmp_path: Path) -> None:
    answer = run(
        beside_torch / "memorymark", "bert-tiny", "cpu", "--fits", "2", "--memory-limit", "512MiB", cwd=tmp_path
    )
    assert answer.splitlines()[-1].startswith("Batch 2 fits")


@pytest.mark.slow
@pytest.mark.nightly
def test_the_public_names_have_types(beside_torch: Path, tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(
        "import memorymark\n"
        "def make_step(batch_size: int):\n    return print\n"
        "reveal_type(memorymark.tune(make_step).largest_batch_size)\n"
        "reveal_type(memorymark.steps([1]))\n"
    )
    command = ("-m", "mypy", "--python-executable", beside_torch / "python", "--config-file", "", "typed.py")
    said = run(sys.executable, *command, cwd=tmp_path)
    assert "int | None" in said
    assert "list[" in said
