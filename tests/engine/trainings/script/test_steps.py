"""`memorymark.steps(loader)` is the loader, unless a command is tuned by it."""

import importlib
from types import SimpleNamespace

import pytest

from engine.public import steps
from engine.trainings.script.start.environment import HOOK

pytestmark = pytest.mark.slow  # needs torch


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch):
    """The hook's module, as it is where a command is tuned with batch size 48."""
    monkeypatch.syspath_prepend(str(HOOK))
    module = importlib.import_module("memorymark_batch")
    yield module
    for name in ("memorymark_batch", "memorymark_watch", "memorymark_read"):
        importlib.sys.modules.pop(name, None)


def watched_by(batch, way: str) -> list:
    marks: list = []
    torch = importlib.import_module("torch")
    settings = {"batch": way, "batch_size": 48}
    batch.memorymark_watch.watched = SimpleNamespace(
        settings=settings, torch=torch, mark=lambda *mark: marks.append(mark)
    )
    return marks


def loader_of(**options):
    data = importlib.import_module("torch.utils.data")
    torch = importlib.import_module("torch")
    return data.DataLoader(range(1_000), generator=torch.Generator().manual_seed(1), **options)


def test_without_a_tuned_command_the_loader_itself_is_returned() -> None:
    loader = object()
    assert steps(loader) is loader


def test_where_the_size_gets_in_another_way_the_loader_itself_is_returned(batch) -> None:
    marks, loader = watched_by(batch, "template"), loader_of(batch_size=32)
    assert steps(loader) is loader
    assert not marks


def test_the_same_samples_are_drawn_in_the_same_order_48_at_a_time(batch) -> None:
    marks, loader = watched_by(batch, "steps"), loader_of(batch_size=32, shuffle=True)
    tried = list(steps(loader))
    assert marks == [("batch_size_set", "memorymark.steps", 32)]
    assert [len(each) for each in tried] == [48] * 20 + [40]
    same_seed = loader_of(batch_size=32, shuffle=True)
    assert [n for each in tried for n in each.tolist()] == [n for each in same_seed for n in each.tolist()]
    assert loader.batch_size == 32
    assert len(loader.batch_sampler) == 32


def test_settings_of_the_loader_stay(batch) -> None:
    watched_by(batch, "steps")
    loader = loader_of(batch_size=32, drop_last=True, collate_fn=len, sampler=range(100))
    assert list(steps(loader)) == [48, 48]
    assert type(steps(loader)) is type(loader)


@pytest.mark.parametrize("make", [lambda: loader_of(batch_sampler=[[1, 2]]), lambda: loader_of(batch_size=None), list])
def test_what_has_no_batch_size_is_refused(batch, make) -> None:
    watched_by(batch, "steps")
    with pytest.raises(TypeError, match="that was given a batch_size"):
        steps(make())


class Arguments:
    """Like those of a Hugging Face Trainer, which uploads each checkpoint where `push_to_hub` is set."""

    def __init__(self) -> None:
        self.per_device_train_batch_size, self.push_to_hub, self.auto_find_batch_size = 8, True, True
        self.__post_init__()

    def __post_init__(self) -> None:
        self.uploads = self.push_to_hub


@pytest.mark.parametrize(("way", "size"), [("hf", 48), ("template", 8)])
def test_a_trainer_uploads_nothing_and_has_its_batch_size_set_only_where_that_is_the_way(
    batch, way: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = watched_by(batch, way)
    monkeypatch.setattr(Arguments, "__post_init__", Arguments.__post_init__)  # restored after the test
    batch.goes_to_arguments(batch.memorymark_watch.watched, SimpleNamespace(TrainingArguments=Arguments))
    arguments = Arguments()
    assert (arguments.uploads, arguments.per_device_train_batch_size) == (False, size)
    assert bool(marks) == (way == "hf")
