"""What the engine reads of cards by NVML, through the real pynvml."""

import json
import sys

import pytest

from engine.text.units import GIB
from tests.cuda_stand_in.cards import Cards, uuid

READ = """
import json, os, sys
import pynvml
from engine.machine import nvml
asked = {"facts": nvml.driver_facts, "settings": nvml.settings, "readings": nvml.readings}
uuid = sys.argv[1]
answers = {name: ask(pynvml, uuid) for name, ask in asked.items()}
found = nvml.devices_with_instances(pynvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
answers["devices"] = found and [facts.to_dict() for facts in found]
print(json.dumps(answers))
"""


def read(cards: Cards, card_uuid: str = uuid(), **environment: str) -> dict:
    done = cards.run(sys.executable, "-c", READ, card_uuid, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_settings_and_readings_of_a_card_are_read(cards: Cards) -> None:
    cards.set(clock_mhz=1110, power_milliwatts=250_000, temperature=83, throttle_reasons=0x24, ecc=0, persistence=0)
    found = read(cards)
    assert found["settings"]["gpu_ecc"] is False
    assert found["settings"]["gpu_persistence_mode"] is False
    assert found["settings"]["gpu_power_limit_watts"] == 250.0
    assert found["readings"]["sm_clock_mhz"] == 1110
    assert found["readings"]["sm_clock_highest_mhz"] == 1410
    assert found["readings"]["power_watts"] == 250.0
    assert found["readings"]["temperature_celsius"] == 83
    assert found["readings"]["throttle_reasons"] == ["sw_power_cap", "sw_thermal_slowdown"]


def test_what_a_card_does_not_tell_is_none(cards: Cards) -> None:
    cards.set(power_milliwatts="none", ecc="none", clock_mhz="none")
    found = read(cards)
    assert found["settings"]["gpu_ecc"] is None
    assert found["readings"]["power_watts"] is None
    assert found["readings"]["sm_clock_mhz"] is None
    assert found["readings"]["temperature_celsius"] == 40


def test_readings_follow_the_card(cards: Cards) -> None:
    cards.set(cards=2, clock_mhz="1410,900")
    assert read(cards, uuid(0))["readings"]["sm_clock_mhz"] == 1410
    assert read(cards, uuid(1))["readings"]["sm_clock_mhz"] == 900


@pytest.mark.parametrize("shift", [0, 70_000])
def test_processes_that_compute_and_that_draw_are_others(cards: Cards, shift: int) -> None:
    cards.set(desktop=GIB, desktop_pid=4711, pid_shift=shift)
    tenant = cards.tenant()
    assert tenant.take(GIB) == 0
    facts = read(cards)["facts"]
    assert [p["pid"] for p in facts["foreign_processes"]] == [tenant.pid + shift, 4711 + shift]
    assert facts["foreign_used_bytes"] > 2 * GIB


def test_a_host_without_mig_lists_nothing_by_itself(cards: Cards) -> None:
    assert read(cards)["devices"] is None


def test_instances_are_devices_and_other_cards_stay_whole(cards: Cards) -> None:
    cards.set(cards=2, memory=8 * GIB, mig="2,0", name="Made-up H100")
    found = read(cards)["devices"]
    assert [d["uuid"][:4] for d in found] == ["MIG-", "MIG-", "GPU-"]
    assert [d["capacity_bytes"] for d in found] == [4 * GIB, 4 * GIB, 8 * GIB]
    assert found[0]["name"] == "Made-up H100 MIG 4gb"
    assert read(cards, found[0]["uuid"])["settings"]["gpu_mig_profile"] == "4gb"


def test_a_process_sees_the_instance_it_is_confined_to_and_nothing_else(cards: Cards) -> None:
    cards.set(cards=2, memory=8 * GIB, mig="2,0")
    second = read(cards)["devices"][1]["uuid"]
    code = "import torch; print(torch.cuda.device_count(), torch.cuda.get_device_properties(0).total_memory)"
    assert cards.python(code, CUDA_VISIBLE_DEVICES=second).stdout.split() == ["1", str(4 * GIB)]
    assert [d["uuid"] for d in read(cards, second, CUDA_VISIBLE_DEVICES=second)["devices"]] == [second]


def test_without_a_driver_everything_is_unknown(cards: Cards) -> None:
    cards.set(fail="nvmlInit_v2:9;nvmlInit:9")
    found = read(cards)
    assert found["facts"] == {}
    assert found["readings"] is None
    assert found["devices"] is None
