"""What an engine gets of the portal: no secret, no shell, bounds; and what a model may bring: no code."""

import ast
import json
import sys
from functools import cache
from typing import Any

import pytest
from django.conf import settings as real

from analysis.workers.device_discovery import devices_find
from analysis.workers.engine_env import engine_environment
from analysis.workers.engine_process import EngineProcess
from engine.errors import DeviceUnavailable

KEPT_OUT = (
    *("SECRET_KEY", "DATABASE_URL", "PGPASSWORD", "DJANGO_SETTINGS_MODULE", "MEMORYMARK_METRICS_TOKEN"),
    *("MEMORYMARK_ADMIN_PASSWORD", "MEMORYMARK_DATA_DIR", "Q_CLUSTER_NAME", "AWS_ACCESS_KEY_ID"),
    *("AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "HUGGINGFACE_API_KEY", "GITHUB_TOKEN", "WANDB_API_KEY", "CUDA_PASSWORD"),
    *("SSH_AUTH_SOCK", "SOMETHING_ELSE"),
)
PASSES = (
    *("PATH", "HOME", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME"),
    *("NVIDIA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"),
    *("TORCHINDUCTOR_CACHE_DIR", "TORCH_HOME", "TRITON_CACHE_DIR", "HF_HOME", "HF_HUB_OFFLINE"),
    *("TRANSFORMERS_CACHE", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    *("ZE_AFFINITY_MASK", "MALLOC_ARENA_MAX", "MEMORYMARK_GPUS", "https_proxy"),
)


def test_secrets_and_whatever_nobody_named_stay_out():
    assert engine_environment(dict.fromkeys(KEPT_OUT, "x")) == {"PYTHONUNBUFFERED": "1"}


def test_what_a_program_and_its_accelerator_need_passes():
    assert set(engine_environment(dict.fromkeys(PASSES, "x"))) == {*PASSES, "PYTHONUNBUFFERED"}


def test_a_variable_that_the_administrator_names_passes(settings):
    settings.ENGINE_ENVIRONMENT = ["HF_TOKEN"]
    assert "HF_TOKEN" in engine_environment({"HF_TOKEN": "x"})


def test_a_proxy_passes_without_somebodys_password_in_it():
    given = {"http_proxy": "http://me:word@proxy:3128", "HTTPS_PROXY": "http://proxy:3128"}
    assert set(engine_environment(given)) == {"HTTPS_PROXY", "PYTHONUNBUFFERED"}


LOOK = """
import json, os, resource
print(json.dumps({"event": "log", "message": json.dumps({
    "environment": sorted(os.environ),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "umask": os.umask(0),
    "leads_its_session": os.getsid(0) == os.getpid(),
})}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process can be set on Linux alone")
def test_a_started_engine_has_no_secret_no_core_dump_bounded_files_and_private_files(monkeypatch):
    for name in KEPT_OUT:
        if name != "DJANGO_SETTINGS_MODULE":
            monkeypatch.setenv(name, "x")
    seen = said_by(EngineProcess([sys.executable, "-c", f"import time; time.sleep(0.2)\n{LOOK}"]))
    assert not set(KEPT_OUT) & set(seen["environment"])
    assert (seen["core"], seen["umask"], seen["leads_its_session"]) == ([0, 0], 0o077, True)
    assert max(seen["files"]) <= 16_384


def said_by(process: EngineProcess) -> dict[str, Any]:
    try:
        return json.loads(next(process.events(20))["message"])
    finally:
        process.end()


def test_arguments_of_an_engine_meet_no_shell(tmp_path):
    mark = tmp_path / "mark"
    spec = f"$(touch {mark}); `touch {mark}` | touch {mark}"
    echo = "import json, sys; print(json.dumps({'event': 'log', 'message': json.dumps(sys.argv[1:])}))"
    assert said_by(EngineProcess([sys.executable, "-c", echo, "--spec", spec])) == ["--spec", spec]
    assert not mark.exists()


def test_an_engine_that_is_asked_has_the_same_environment(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://name:password@host/base")
    says = "import os, sys; sys.exit('a secret: ' + str('DATABASE_URL' in os.environ))"
    with pytest.raises(DeviceUnavailable, match="a secret: False"):
        devices_find([sys.executable, "-c", says])


@cache
def nodes_of_our_code() -> list[tuple[str, ast.AST]]:
    """Every piece of syntax in what the repository runs, with its file's name."""
    folders = (real.BASE_DIR / name for name in ("engine", "analysis", "memorymark_site"))
    files = [path for folder in folders for path in folder.rglob("*.py")]
    return [(path.name, node) for path in files for node in ast.walk(ast.parse(path.read_text()))]


def names_called(besides: str = "") -> set[str]:
    """`os.system`, `eval`, ...: what is called by a plain name, in all files or in all but one."""
    calls = (node.func for file, node in nodes_of_our_code() if isinstance(node, ast.Call) and file != besides)
    plain = (func for func in calls if isinstance(getattr(func, "value", func), ast.Name))
    return {ast.unparse(func) for func in plain}


@pytest.mark.slow
def test_no_process_is_started_through_a_shell_and_no_text_is_run_as_code():
    assert not {"eval", "exec", "os.system", "os.popen", "subprocess.getoutput"} & names_called()
    assert not [name for name, node in nodes_of_our_code() if isinstance(node, ast.keyword) and node.arg == "shell"]


def test_a_model_never_brings_code_of_its_own():
    """`trust_remote_code` is False by default, and nothing here can set it. A config that names it is refused."""
    named = {
        file
        for file, node in nodes_of_our_code()
        if "trust_remote_code" in [getattr(node, field, None) for field in ("arg", "attr", "id", "value")]
    }
    assert named == {"from_config.py"}


def test_nothing_unpickles_but_the_guarded_reader_of_the_queue():
    ways = {"pickle.loads", "pickle.load", "torch.load", "marshal.loads", "shelve.open", "yaml.load", "joblib.load"}
    # inside a training's own process: an object that it has broadcast itself, as torch's own broadcast unpickles it
    assert not ways & names_called(besides="emulated_group.py")
