"""What we change of django-q2 was read in its version; of its table only our own tasks come out."""

import ast
import os
import pickle
from importlib.metadata import version
from multiprocessing import Event
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import signing
from django.utils import timezone
from django_q import pusher as q2_pusher
from django_q import signing as q2_signing
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from analysis.workers import tasks
from analysis.workers.django_q_adapter import READ_IN_VERSION, TASKS, Refused, SignedTaskReader

OTHER_KEY = "a-key-that-is-not-ours-but-as-long-as-any-other-0123456789"


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def signed(task: Any, key: str | None = None) -> str:
    return signing.dumps(task, key=key or Conf.SECRET_KEY, salt=Conf.PREFIX, serializer=q2_signing.PickleSerializer)


def made(**parts: Any) -> dict[str, Any]:
    plain = {"id": "1", "name": "n", "func": "analysis.workers.tasks.wake", "args": (), "kwargs": {}}
    return {**plain, "started": timezone.now(), **parts}


def test_a_task_of_ours_is_read():
    assert SignedTaskReader.loads(signed(made()))["func"] == "analysis.workers.tasks.wake"


@pytest.mark.parametrize(
    "parts",
    [
        {"func": "os.system"},
        {"func": "os.system", "args": ("true",)},
        {"func": "analysis.workers.tasks.os.system"},
        {"func": "subprocess.run"},
        {"func": "analysis.runs.services.runs_cancel"},
        {"func": None},
        {"args": ("true",)},
        {"kwargs": {"a": 1}},
        {"hook": "os.system"},
        {"chain": [("os.system", ("true",))]},
        {"sync": True},
        {"cached": True},
        {"group": "g", "iter_count": 1},
    ],
    ids=str,
)
def test_a_task_that_is_not_ours_is_refused_though_its_signature_is_right(parts):
    with pytest.raises(Refused):
        SignedTaskReader.loads(signed(made(**parts)))


def test_a_function_itself_in_place_of_a_name_is_refused():
    with pytest.raises(Refused, match=r"system in a task"):
        SignedTaskReader.loads(signed(made(func=os.system)))


@pytest.mark.parametrize("value", ["text", 7, [], {}, None, {"func": {}}, {"func": []}])
def test_what_is_no_task_at_all_is_refused(value):
    with pytest.raises((Refused, TypeError)):
        SignedTaskReader.loads(signed(value))


def test_a_payload_signed_with_another_key_is_not_even_unpickled(tmp_path):
    mark = tmp_path / "mark"
    with pytest.raises(q2_signing.BadSignature, match="does not match"):
        SignedTaskReader.loads(signed(made(args=(Trap(mark),)), OTHER_KEY))
    assert not mark.exists()


def test_a_payload_of_ours_may_call_nothing_while_it_is_read(tmp_path):
    """Were the key known, the pickle would still run nothing; django-q2 by itself would run it."""
    mark = tmp_path / "mark"
    payload = signed(made(args=(Trap(mark),)))
    with pytest.raises(Refused):
        SignedTaskReader.loads(payload)
    assert not mark.exists()
    q2_signing.SignedPackage.loads(payload)
    assert mark.exists()


@pytest.mark.parametrize("payload", ["", "x", "a:b", "a:b:c", "::", "é:ü:ö", pickle.dumps(1).hex()])
def test_garbage_is_refused(payload):
    with pytest.raises(q2_signing.BadSignature):
        SignedTaskReader.loads(payload)


def test_a_signed_text_that_is_no_pickle_is_refused():
    class Raw:
        def dumps(self, value: bytes) -> bytes:
            return value

    for data in (b"", b"nonsense", b"\x80\x05"):
        with pytest.raises(Refused):
            SignedTaskReader.loads(signing.dumps(data, key=Conf.SECRET_KEY, salt=Conf.PREFIX, serializer=Raw))


class Taken:
    """In place of the queue between pusher and worker."""

    def __init__(self) -> None:
        self.tasks: list[dict[str, Any]] = []

    def put(self, task: dict[str, Any]) -> None:
        self.tasks.append(task)


@pytest.mark.django_db
def test_the_pusher_hands_on_our_task_and_drops_the_others(monkeypatch):
    monkeypatch.setattr(q2_pusher, "SignedPackage", SignedTaskReader)
    key = settings.Q_CLUSTER["name"]
    async_task("os.system", "true", cluster=key)
    OrmQ.objects.create(key=key, payload=signed(made(), OTHER_KEY), lock=timezone.now())
    async_task("analysis.workers.tasks.housekeep", cluster=key, ack_failure=True)
    taken, stop = Taken(), Event()
    stop.set()
    for _ in range(3):
        q2_pusher.pusher(taken, stop, get_broker(key))
    assert [task["func"] for task in taken.tasks] == ["analysis.workers.tasks.housekeep"]
    assert OrmQ.objects.count() == 1  # until it is acknowledged


def test_the_version_of_django_q2_is_the_one_that_the_adapter_was_read_in():
    """Another version may have other insides: read `django_q_adapter.py` beside it, then name the new version there."""
    assert version("django-q2") == READ_IN_VERSION


def test_schedules_in_the_database_are_not_run():
    """A row of django-q2's Schedule can name any function, and have it called in the cluster's own process."""
    assert Conf.SCHEDULER is False


def test_every_task_that_is_queued_anywhere_is_on_the_list_and_exists():
    found = set()
    for path in (settings.BASE_DIR / "analysis").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and str(node.value).startswith("analysis.workers.tasks."):
                found.add(node.value)
    assert found == TASKS
    assert all(callable(getattr(tasks, name.rpartition(".")[2])) for name in TASKS)
