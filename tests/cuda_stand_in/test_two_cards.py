"""Two cards: a run uses the one it was given, and opens no other."""

import json

from engine.text.units import GIB
from tests.cuda_stand_in.cards import Cards, WarmEngine, uuid

CARDS = {"cards": 2, "memory": f"{4 * GIB},{2 * GIB}"}
SHORT = {"sequence_length": 128, "start_batch_size": 64}


def test_a_run_on_the_second_card_opens_no_context_on_the_first(warm: WarmEngine) -> None:
    result = warm.measure(CARDS, device="cuda:1", **SHORT)
    assert result.boundary.certified
    assert result.device.capacity_bytes == 2 * GIB
    assert {card for _, card in warm.cards.contexts()} == {uuid(1)}


def test_memory_on_one_card_is_not_missing_on_the_other(warm: WarmEngine) -> None:
    first = warm.probe({**CARDS, "held": f"{3 * GIB},0"}, 300, device="cuda:1", sequence_length=128)
    second = warm.probe({**CARDS, "held": f"0,{3 * GIB // 2}"}, 300, device="cuda:1", sequence_length=128)
    assert first.fits
    assert not second.fits


# in a fork for each pin: the driver reads the variable when it starts
PINNED = """
import json, os, sys
import torch
for pin in sys.argv[1:]:
    if os.fork() == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = pin
        torch.zeros(1, device="cuda:0")
        print(json.dumps([torch.cuda.device_count(), torch.cuda.mem_get_info()[1]]), flush=True)
        os._exit(0)
    os.wait()
"""


def test_a_pinned_process_sees_its_card_alone_and_calls_it_the_first(cards: Cards) -> None:
    cards.set(**CARDS)
    done = cards.python(PINNED, uuid(1), "1", uuid(1)[:12])
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[1, 2 * GIB]] * 3
    assert [card for _, card in cards.contexts()] == [uuid(1)] * 3


def test_a_run_on_the_cpu_opens_no_context_on_any_card(cards: Cards) -> None:
    cards.set(**CARDS)
    arguments = ("bert-tiny", "cpu", "--memory-limit", "110MiB", "--max", "1", "--no-estimate")
    assert cards.engine(*arguments).returncode == 0
    assert cards.contexts() == []
