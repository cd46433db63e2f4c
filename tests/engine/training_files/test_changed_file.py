"""A change is written as lines of the file, and nothing else of it changes."""

from pathlib import Path

import pytest

from engine.errors import SpecError
from engine.estimate.what_to_change import Variant
from engine.training_files.changed_file import changeable, changed_text, lines_of, write
from engine.training_files.training_file import read_training_file
from tests.engine.training_files.test_training_file import AXOLOTL, LLAMA_FACTORY, SWIFT, TORCHTUNE, TRL, json


def file_of(tmp_path: Path, text: str, name: str):
    path = tmp_path / name
    path.write_text(text)
    return read_training_file(path, {})


def variant(size: int = 8, micro: int | None = None, **settings: object) -> Variant:
    return Variant("", dict(settings), (), size, 0, True, True, 8, 8, micro_batch_size=micro)


FILES = [
    ("a.yml", AXOLOTL),
    ("b.yaml", LLAMA_FACTORY),
    ("c.json", json.dumps(TRL, indent=2)),
    ("d.sh", SWIFT),
    ("e.yaml", TORCHTUNE),
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_a_smaller_batch_is_added_up_to_the_same_one(tmp_path: Path, name: str, text: str) -> None:
    file = file_of(tmp_path, text, name)
    size, steps = file.spec.current_batch_size * 2, file.spec.accumulation_steps
    lines = lines_of(file, variant(size, 1))
    assert lines is not None
    (tmp_path / f"new{name}").write_text(changed_text(file, lines))
    new = read_training_file(tmp_path / f"new{name}", {})
    assert (new.spec.current_batch_size, new.spec.accumulation_steps) == (1, size * steps)
    before, after = text.splitlines(), new.text.splitlines()
    assert len(set(before) - set(after)) <= 2
    assert len(after) - len(before) <= 2


def test_a_comment_behind_a_value_stays(tmp_path: Path) -> None:
    file = file_of(tmp_path, AXOLOTL.replace("micro_batch_size: 2", "micro_batch_size: 2   # per card"), "a.yml")
    assert "micro_batch_size: 1   # per card\n" in changed_text(file, {"micro_batch_size": 1})


def test_a_change_is_written_in_the_words_of_the_tool(tmp_path: Path) -> None:
    assert lines_of(file_of(tmp_path, TORCHTUNE, "e.yaml"), variant(optimizer="paged-adamw-8bit")) == {
        "optimizer._component_": "bitsandbytes.optim.PagedAdamW8bit"
    }
    checkpointing = file_of(tmp_path, LLAMA_FACTORY + "disable_gradient_checkpointing: true\n", "b.yaml")
    assert not checkpointing.spec.gradient_checkpointing
    assert lines_of(checkpointing, variant(gradient_checkpointing=True)) == {"disable_gradient_checkpointing": False}
    assert lines_of(checkpointing, variant(lora_rank=16)) is None


def test_only_what_a_line_can_change_is_tried(tmp_path: Path) -> None:
    assert "optimizer" in changeable(file_of(tmp_path, LLAMA_FACTORY, "b.yaml"))
    adapters = changeable(file_of(tmp_path, AXOLOTL, "a.yml"))
    assert "optimizer" not in adapters
    assert "offload_activations" in adapters


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(SpecError, match="is there already"):
        write(tmp_path / "there", "new")
    with pytest.raises(SpecError, match="cannot be written"):
        write(tmp_path / "no folder" / "new", "new")
    assert (tmp_path / "there").read_text() == "mine"
