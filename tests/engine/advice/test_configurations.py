"""The configurations of DeepSpeed and torchtitan: what they hold; and slow, that the libraries' own classes read them.

Neither library is installed with our requirements: DeepSpeed has no wheel and torchtitan brings a dozen packages. The
slow test downloads both (3 MB), unpacks them, and gives the configuration to DeepSpeed's `DeepSpeedConfig`, and the
assignments to torchtitan's `TrainingConfig`. No step is trained with either.
"""

import ast
import importlib.util
import json
import subprocess
import sys
import tarfile
import zipfile
from types import SimpleNamespace

import pytest

from engine.advice import configurations, snippets
from engine.text.units import GIB
from tests.engine.advice.recipes import recipe

DEEPSPEED, TORCHTITAN = "deepspeed==0.19.8", "torchtitan==0.3.0"
DTYPES = {"fp32": "None", "bf16": "torch.bfloat16", "fp16": "torch.float16"}
DEEPSPEED_NEEDS = ("hjson", "py-cpuinfo", "einops", "msgpack", "ninja")


def test_deepspeed_configuration_holds_batch_accumulation_and_precision():
    written = configurations.deepspeed(recipe(micro=8, steps=4, devices=2, precision="bf16"))
    config = json.loads(written.text)
    assert config["train_batch_size"] == 8 * 4 * 2
    assert (config["train_micro_batch_size_per_gpu"], config["gradient_accumulation_steps"]) == (8, 4)
    assert config["torch_autocast"] == {"enabled": True, "dtype": "bfloat16"}
    assert "torch.optim.AdamW(model.parameters(), lr=learning_rate)" in written.python


@pytest.mark.parametrize("training", [{"precision": "bf16-pure"}, {"lora_rank": 8, "load_in_4bit": True}])
def test_deepspeed_is_left_out_where_it_would_train_otherwise_than_measured(training):
    assert isinstance(configurations.deepspeed(recipe(**training)), snippets.NoSnippet)


@pytest.mark.parametrize(
    ("model", "training"),
    [
        ("bert", {}),
        ("gpt2-lm", {"precision": "fp16"}),
        ("gpt2-lm", {"lora_rank": 8}),
        ("gpt2-lm", {"optimizer": "sgd"}),
        ("gpt2-lm", {"sequences": "packed"}),
    ],
)
def test_torchtitan_is_left_out_with_its_reason_where_it_cannot_train_this(model, training):
    left_out = configurations.torchtitan(recipe(model, "cuda", **training))
    assert isinstance(left_out, snippets.NoSnippet)
    assert left_out.reason


def test_memory_limit_is_written_as_the_share_of_the_card_and_never_above_it():
    held = recipe("bert", "cuda", limit=8 * GIB, capacity=24 * GIB)
    assert held.limit_lines() == ["torch.cuda.set_per_process_memory_fraction(0.3333)  # 8.0 GiB, as in this run"]
    assert recipe("bert", "cuda", limit=None, capacity=24 * GIB).limit_lines() == []
    assert recipe("bert", "cpu", limit=8 * GIB, capacity=24 * GIB).limit_lines() == []


def titan_trainer(training):
    """Run the assignments on this TrainingConfig; the imports of torchtitan's other modules are left out."""
    code = configurations.torchtitan(
        recipe("gpt2-lm", "cuda", micro=8, steps=4, precision="bf16", gradient_checkpointing=True)
    ).text
    plain = "\n".join(line for line in code.splitlines() if not line.startswith("from "))
    config = SimpleNamespace(training=training)
    names = ("OptimizersContainer", "FullAC")
    made = {name: SimpleNamespace(Config=lambda **given: given) for name in names}
    exec(plain, {"config": config, "learning_rate": 0.1, "ParamGroupConfig": lambda **given: given, **made})
    return config


def test_torchtitan_lines_set_batch_length_precision_and_checkpointing():
    config = titan_trainer(SimpleNamespace())
    assert vars(config.training) == {
        "local_batch_size": 8,
        "global_batch_size": 32,
        "seq_len": 512,
        "dtype": "float32",
        "mixed_precision_param": "bfloat16",
    }
    assert config.optimizer["param_groups"][0]["optimizer_kwargs"] == {"lr": 0.1}
    assert config.activation_checkpoint == {}


def downloaded(folder, *requirements, options=()):
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        *options,
        "--dest",
        str(folder),
        *requirements,
    ]
    subprocess.run(command, check=True, timeout=300)
    return sorted(folder.iterdir())


@pytest.mark.slow
def test_torchtitan_s_own_training_configuration_takes_the_lines(tmp_path):
    (wheel,) = downloaded(tmp_path, TORCHTITAN)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "titan")
    package = tmp_path / "titan" / "torchtitan"
    loading = importlib.util.spec_from_file_location("torchtitan_configs", package / "config" / "configs.py")
    module = importlib.util.module_from_spec(loading)
    loading.loader.exec_module(module)
    config = titan_trainer(module.TrainingConfig())  # its slots take no name that it does not have
    assert (config.training.local_batch_size, config.training.global_batch_size) == (8, 32)
    defined = {
        node.name
        for path in ("distributed/activation_checkpoint.py", "components/optimizer/optimizer.py")
        for node in ast.walk(ast.parse((package / path).read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert {"FullAC", "OptimizersContainer", "ParamGroupConfig"} <= defined


@pytest.mark.slow
def test_deepspeed_s_own_configuration_class_takes_the_file(tmp_path):
    (source,) = downloaded(tmp_path / "source", DEEPSPEED, options=("--no-binary", ":all:", "--no-build-isolation"))
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    needs = tmp_path / "needs"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(needs), *DEEPSPEED_NEEDS]
    subprocess.run(install, check=True, timeout=300)
    written = {
        precision: configurations.deepspeed(recipe(micro=8, steps=4, precision=precision)).text for precision in DTYPES
    }
    code = f"""
import json, sys
sys.path[:0] = [{str(tmp_path / source.name.removesuffix(".tar.gz"))!r}, {str(needs)!r}]
from deepspeed.runtime.config import DeepSpeedConfig
for text in json.loads(sys.stdin.read()).values():
    read = DeepSpeedConfig(json.loads(text))
    sizes = (read.train_batch_size, read.train_micro_batch_size_per_gpu, read.gradient_accumulation_steps)
    print(*sizes, read.torch_autocast_dtype if read.torch_autocast_enabled else None)
"""
    environment = {"DS_ACCELERATOR": "cpu", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    reading = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(written),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert reading.returncode == 0, reading.stderr
    assert reading.stdout.splitlines()[-len(DTYPES) :] == [f"32 8 4 {dtype}" for dtype in DTYPES.values()]
