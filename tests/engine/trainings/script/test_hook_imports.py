"""The watch begins when torch has been executed, whatever looked for it before and however it was imported.

Each program is a Python process of its own with the hook's own files. Its torch is a few lines on the disk with the
names that the watch hangs on.
"""

import json
import os
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from engine.trainings.script.hook.memorymark_seen import FACTS, SUFFIX
from engine.trainings.script.start.environment import HOOK, HOOK_VARIABLE

FAKE_TORCH = {
    "torch/__init__.py": """
        import os
        open("executed", "w").close()
        if os.environ.pop("FAILS_ONCE", None):
            from torch import nn
            raise OSError("libcudart.so.13: cannot open shared object file")
        import torch.nn.modules.module, torch.optim.optimizer, torch.utils.data.dataloader
        from torch import cuda, distributed, nn, optim, utils, version
        from . import _C
        __version__ = "2.13.0"
        class Tensor: pass
        def is_grad_enabled(): return True
    """,
    "torch/_C.py": "",
    "torch/version.py": "cuda = None",
    "torch/cuda.py": "def is_initialized(): return False",
    "torch/distributed.py": "def is_available(): return False",
    "torch/nn/__init__.py": "class Module: pass",
    "torch/nn/modules/__init__.py": "",
    "torch/nn/modules/module.py": """
        def register_module_forward_pre_hook(hook): pass
        def register_module_forward_hook(hook, with_kwargs, always_call): pass
    """,
    "torch/optim/__init__.py": "from .optimizer import Optimizer",
    "torch/optim/optimizer.py": """
        class Optimizer: pass
        def register_optimizer_step_pre_hook(hook): pass
        def register_optimizer_step_post_hook(hook): pass
    """,
    "torch/utils/__init__.py": "",
    "torch/utils/data/__init__.py": "",
    "torch/utils/data/dataloader.py": """
        class _BaseDataLoaderIter:
            def __next__(self): pass
    """,
    "torch/launcher.py": "print('launched')",
    "torch/notes.txt": "read by importlib.resources",
    "transformers/__init__.py": """
        import importlib.util
        has_torch = importlib.util.find_spec("torch") is not None
    """,
    "transformers/training_args.py": """
        class TrainingArguments:
            push_to_hub, per_device_train_batch_size = True, 8
            def __init__(self): self.__post_init__()
            def __post_init__(self): pass
    """,
}
LOOK = "from importlib import import_module, reload\nfrom importlib.util import *\nassert find_spec('torch').origin\n"
WAYS = {
    "it is imported": "import torch",
    "it is looked for again": "assert find_spec('torch'); assert find_spec('torch'); import torch",
    "transformers looks for it": "import transformers; assert transformers.has_torch; import torch",
    "a thread looks for it": """
        import threading
        looks = [threading.Thread(target=find_spec, args=['torch']) for _ in range(8)]
        [each.start() for each in looks]; import torch; [each.join() for each in looks]
    """,
    "it is imported by threads": """
        import threading
        imports = [threading.Thread(target=import_module, args=['torch']) for _ in range(8)]
        [each.start() for each in imports]; [each.join() for each in imports]
    """,
    "it is imported by its name": "import_module('torch')",
    "a part of it is imported first": "import torch.optim.optimizer",
    "a part of it is run": "import runpy; runpy.run_module('torch.launcher', run_name='__main__')",
    "a part of it is looked for": "assert find_spec('torch.launcher')",
    "it is lazy and then used": """
        import sys
        spec = find_spec('torch'); spec.loader = LazyLoader(spec.loader)
        torch = sys.modules['torch'] = module_from_spec(spec)
        spec.loader.exec_module(torch); import json.tool
        import os; assert not os.path.exists('executed')
        assert torch.__version__
    """,
    "it is executed by hand": """
        import sys
        spec = find_spec('torch'); sys.modules['torch'] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules['torch'])
    """,
    "it is executed by hand past every finder": """
        import sys
        from importlib.machinery import PathFinder
        spec = PathFinder.find_spec('torch'); sys.modules['torch'] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules['torch']); import json.tool
    """,
    "an older look executes it": "first = find_spec('torch'); find_spec('torch'); first.loader.load_module('torch')",
    "it is reloaded": "import torch; reload(torch); reload(torch)",
    "it is forgotten and imported again": """
        import torch, sys
        [sys.modules.pop(name) for name in list(sys.modules) if name.split('.')[0] == 'torch']; import torch
    """,
    "it fails halfway and is tried again": """
        import os; os.environ['FAILS_ONCE'] = 'yes'
        try: import torch
        except OSError: import torch
    """,
    "a finder in front finds it": """
        import sys
        from importlib.machinery import PathFinder
        class Front:
            def find_spec(self, name, path, target=None): return PathFinder.find_spec(name) if name == 'torch' else None
        sys.meta_path.insert(0, Front()); import torch, json.tool
    """,
    "a finder in front asks those behind it": """
        import sys
        class Front:
            busy = False
            def find_spec(self, name, path, target=None):
                if Front.busy or name != 'torch': return None
                Front.busy = True
                try: return find_spec(name)
                finally: Front.busy = False
        sys.meta_path.insert(0, Front()); import torch
    """,
    "every finder is wrapped": """
        import sys
        class Wrapped:
            def __init__(self, finder): self.find_spec = finder.find_spec
        sys.meta_path[:] = [Wrapped(finder) for finder in sys.meta_path]; import torch, json.tool
    """,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the packages, in which programs are run; the hook writes into `notes` below it."""
    for name, text in FAKE_TORCH.items():
        path = tmp_path / "packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedented(text))
    (tmp_path / "notes").mkdir()
    return tmp_path


def dedented(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return "".join(f"{line[indent:]}\n" for line in lines)


def environment_of(folder: Path, batch: str = "template") -> dict[str, str]:
    settings = {"folder": str(folder / "notes"), "batch": batch, "batch_size": 32, "limit_bytes": None}
    path = os.pathsep.join(map(str, (HOOK, folder / "packages")))
    return os.environ | {"PYTHONPATH": path, HOOK_VARIABLE: json.dumps(settings)}


def ran(folder: Path, program: str, batch: str = "template") -> list[dict]:
    """Run a program with the hook; what was noted of each process in which the watch began."""
    (folder / "program.py").write_text(program)
    command = [sys.executable, "-W", "ignore", "program.py"]
    done = subprocess.run(command, cwd=folder, env=environment_of(folder, batch), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    return [json.loads(path.read_text()) for path in (folder / "notes").glob("*.json")]


def times_armed(noted: dict) -> int:
    return [mark[1] for mark in noted["marks"]].count("armed")


@pytest.mark.parametrize("way", WAYS)
def test_the_watch_begins_once_after_a_look_and_then(folder: Path, way: str) -> None:
    (noted,) = ran(folder, LOOK + dedented(WAYS[way]))
    assert times_armed(noted) == 1


@pytest.mark.parametrize("program", ["", "import transformers", "find_spec('torch').loader.get_source('torch')"])
def test_torch_that_is_looked_for_and_never_run_begins_no_watch(folder: Path, program: str) -> None:
    assert not ran(folder, LOOK + program)
    assert not (folder / "executed").exists()


def test_torch_that_was_imported_before_the_hook_is_watched(folder: Path) -> None:
    settings = environment_of(folder)[HOOK_VARIABLE]
    program = f"""
        import os, sys
        sys.path.insert(0, "packages"); import torch
        os.environ["{HOOK_VARIABLE}"] = sys.argv[1]; sys.path.insert(0, {str(HOOK)!r}); import sitecustomize
    """
    (folder / "program.py").write_text(dedented(program))
    subprocess.run([sys.executable, "program.py", settings], cwd=folder, check=True)
    (noted,) = [json.loads(path.read_text()) for path in (folder / "notes").glob("*.json")]
    assert times_armed(noted) == 1


def test_a_process_that_a_program_spawns_is_watched_by_itself(folder: Path) -> None:
    program = """
        import multiprocessing, sys
        from importlib.util import find_spec
        find_spec("torch")
        def train(): import torch, atexit; atexit._run_exitfuncs()
        if __name__ == "__main__":
            child = multiprocessing.get_context("spawn").Process(target=train); child.start(); child.join()
    """
    (noted,) = ran(folder, dedented(program))
    assert times_armed(noted) == 1


@pytest.mark.parametrize(
    "way",
    [
        "assert find_spec('transformers.training_args'); from transformers.training_args import TrainingArguments",
        "import transformers.training_args; reload(transformers.training_args)\n"
        "from transformers.training_args import TrainingArguments",
        "spec = find_spec('transformers.training_args'); module = module_from_spec(spec)\n"
        "spec.loader.exec_module(module); TrainingArguments = module.TrainingArguments",
    ],
)
def test_the_arguments_of_a_trainer_are_given_the_size_after_looks_and_reloads(folder: Path, way: str) -> None:
    program = f"{LOOK}{way}\nimport torch\narguments = TrainingArguments()\n"
    (noted,) = ran(
        folder, f"{program}assert (arguments.per_device_train_batch_size, arguments.push_to_hub) == (32, False)", "hf"
    )
    assert [mark[2:] for mark in noted["marks"] if mark[1] == "batch_size_set"] == [["TrainingArguments", 8]]


def test_what_programs_read_of_a_spec_and_its_loader_is_as_without_the_hook(folder: Path) -> None:
    program = """
        import importlib.machinery, importlib.resources, importlib.util, inspect, pkgutil, torch
        for spec in (importlib.util.find_spec("torch"), torch.__spec__):
            assert type(spec.loader) is importlib.machinery.SourceFileLoader
            assert spec.loader.is_package("torch") and "__version__" in spec.loader.get_source("torch")
            assert spec.loader.get_resource_reader("torch") is not None
        assert torch.__spec__.loader is torch.__loader__ and inspect.getsource(torch).startswith("import os")
        assert importlib.resources.files("torch").joinpath("notes.txt").read_text().startswith("read by")
        assert pkgutil.get_data("torch", "notes.txt") and torch.__spec__.has_location
    """
    (noted,) = ran(folder, dedented(program))
    assert times_armed(noted) == 1


def test_a_folder_that_is_named_torch_is_left_alone(folder: Path) -> None:
    (folder / "torch").mkdir()
    (folder / "packages" / "torch").rename(folder / "packages" / "other")
    here_alone = "import sys; sys.path[:] = [each for each in sys.path if 'site-packages' not in each]"
    assert not ran(folder, f"{here_alone}\nimport torch; assert not hasattr(torch, 'nn')")


def test_a_torch_that_cannot_be_imported_fails_with_its_own_error(folder: Path) -> None:
    program = (
        "import os; os.environ['FAILS_ONCE'] = 'yes'\ntry: import torch\nexcept OSError as e: assert 'cudart' in str(e)"
    )
    assert not ran(folder, program)


def test_a_process_shows_while_it_runs_whether_torch_was_imported(folder: Path) -> None:
    seen = f"import sys, glob; sys.stdout.write(open(glob.glob('notes/*{SUFFIX}')[0], 'rb').read().hex() + ' ')\n"
    (folder / "program.py").write_text(f"{seen}import torch\n{seen}")
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, env=environment_of(folder), capture_output=True)
    before, after = (
        dict(zip(FACTS, array("d", bytes.fromhex(each)), strict=True)) for each in done.stdout.decode().split()
    )
    assert before["began"] > 0 == before["imported"]
    assert before["began"] <= after["importing"] <= after["imported"]
    (path,) = (folder / "notes").glob(f"*{SUFFIX}")
    assert dict(zip(FACTS, array("d", path.read_bytes()), strict=True))["ended"] >= after["imported"]


def test_a_process_whose_folder_is_gone_runs_on(folder: Path) -> None:
    (folder / "program.py").write_text("print('ran')")
    (folder / "notes").rmdir()
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, env=environment_of(folder), capture_output=True)
    assert (done.stdout, done.stderr, done.returncode) == (b"ran\n", b"", 0)
