"""The packaged Action and the hook of pre-commit run the check: their lines, by a shell as theirs."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.engine.gate.test_check_command import BASE, write

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "packaging" / "action" / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


def shell(folder: Path, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line where `memorymark` is this checkout's engine."""
    program = folder / "bin" / "memorymark"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} -m engine "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", line]
    environment = os.environ | variables | {"PATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("memory_factor", "status"), [(1.0, 0), (1.005, 0), (1.02, 7)])
def test_the_action_stops_where_memory_grew_by_more_than_one_percent(
    tmp_path: Path, memory_factor: float, status: int
) -> None:
    now = json.loads(json.dumps(BASE))
    for part in ("curve", "probes"):
        for each in now.get(part, ()):
            for name in ("peak_allocated_bytes", "peak_reserved_bytes"):
                if each.get(name):
                    each[name] = int(each[name] * memory_factor)
    write(tmp_path, now, "now.json")
    write(tmp_path, BASE, "base.json")
    defaults = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    inputs = defaults | {"result": "now.json", "baseline": "base.json"}
    (step,) = ACTION["runs"]["steps"]
    values = {name: inputs[text.strip("${ }").removeprefix("inputs.")] for name, text in step["env"].items()}
    done = shell(tmp_path, step["run"], **values)
    assert done.returncode == status, done.stdout + done.stderr


def test_the_hook_compares_the_two_committed_files(tmp_path: Path) -> None:
    write(tmp_path, BASE, "result.json")
    write(tmp_path, BASE, "baseline.json")
    assert shell(tmp_path, HOOK["entry"]).returncode == 0
    (tmp_path / "baseline.json").write_text("{}")
    assert shell(tmp_path, HOOK["entry"]).returncode == 2
