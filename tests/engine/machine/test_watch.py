"""Other work on the cores is seen, our own is not counted, and what cannot be read is unknown."""

import os
import time

from engine.machine.watch import MachineWatch, usable_cores, waiting_policy

TICKS = os.sysconf("SC_CLK_TCK")


def synthetic_proc(folder, busy_seconds: float, swapped: int):
    core = min(usable_cores())
    ticks = int(busy_seconds * TICKS)
    elsewhere = f"cpu{max(usable_cores()) + 1} {ticks * 9} 0 0 0 0 0 0 0 0 0"
    (folder / "stat").write_text(f"cpu {ticks} 0 0 0\ncpu{core} {ticks} 0 0 777 88 0 0 0 0 0\n{elsewhere}\n")
    (folder / "vmstat").write_text(f"pswpin {swapped}\npswpout 1\noom_kill 0\n")
    return folder


def test_what_ran_on_our_cores_beside_us_is_other_work(tmp_path):
    watch = MachineWatch(synthetic_proc(tmp_path, busy_seconds=100, swapped=5))
    time.sleep(0.2)
    synthetic_proc(tmp_path, busy_seconds=100.3, swapped=12)
    seen = watch.read()
    assert 0 < seen["others_cores"] <= 1.6
    assert seen["pages_swapped"] == 7


def test_our_own_work_is_not_counted(tmp_path):
    watch = MachineWatch(synthetic_proc(tmp_path, busy_seconds=100, swapped=0))
    before = time.process_time()
    while time.process_time() - before < 0.1:
        pass
    synthetic_proc(tmp_path, busy_seconds=100.05, swapped=0)
    assert watch.read()["others_cores"] == 0


def test_threads_sleep_while_they_wait_where_others_use_the_cores_unless_the_user_says_how_they_wait(monkeypatch):
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    others = {"others_cores": 1.0 * len(usable_cores())}
    monkeypatch.setattr(MachineWatch, "read", lambda _: others)
    assert waiting_policy("cpu") == {"OMP_WAIT_POLICY": "passive"}
    assert waiting_policy("cuda:0") == {}
    monkeypatch.setenv("GOMP_SPINCOUNT", "1000")
    assert waiting_policy("cpu") == {}
    monkeypatch.delenv("GOMP_SPINCOUNT")
    others["others_cores"] = 0.1 * len(usable_cores())
    assert waiting_policy("cpu") == {}


def test_a_machine_that_does_not_say_is_unknown(tmp_path):
    seen = MachineWatch(tmp_path / "missing").read()
    assert (seen["others_cores"], seen["pages_swapped"]) == (None, None)
