"""How much slower a training of many small modules is under the watch of `tune`, in the steps that it times.

    python benchmarks/watch_cost.py [--rounds 6]

A script that times its own steps is started alone and watched in turns, on one thread. The ratio of its quick steps,
the lower tenth, is one JSON line for each kind of start, with the interval over the rounds. Start it on a machine that
does nothing else.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from engine.results.intervals import interval  # noqa: E402 - the checkout is put on the path first
from engine.tune.spec import TuneSpec  # noqa: E402
from engine.tune.start.command import begin_command  # noqa: E402
from engine.tune.start.launch import Watching, start  # noqa: E402

STEPS, SKIPPED = 600, 200
SCRIPT = f"""
import statistics, sys, time
import torch
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(100)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows, ends = torch.randn(int(sys.argv[1]), 8), []
for _ in range({STEPS}):
    optimizer.zero_grad()
    model(rows).square().mean().backward()
    optimizer.step()
    ends.append(time.perf_counter())
    if len(ends) == {STEPS - 1}:
        lengths = [b - a for a, b in zip(ends, ends[1:])][{SKIPPED}:]
        open(sys.argv[2], "w").write(str(statistics.quantiles(lengths, n=10)[0]))
"""
FASTER = {"seed": 0, "set": {}, "is_trial": False, "environment": {}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        script, seconds = Path(folder) / "many_modules.py", Path(folder) / "seconds"
        script.write_text(SCRIPT)
        command = [sys.executable, str(script), "8", str(seconds)]
        begin = partial(begin_command, TuneSpec((*command[:2], "{batch_size}", command[3]), device="cpu"))
        ratios: dict[str, list[float]] = {"tune": [], "tune --faster": []}
        for _ in range(rounds):
            subprocess.run(command, check=True)
            alone = float(seconds.read_text())
            for kind, faster in (("tune", None), ("tune --faster", FASTER)):
                watching = Watching(5, timed_steps=STEPS, timed_seconds=600.0, faster=faster)
                start(begin, 8, watching, seconds=600)
                ratios[kind].append(math.log(float(seconds.read_text()) / alone))
    for kind, found in ratios.items():
        ratio = interval(found).exp()
        line = {"kind": kind, "times_as_long": ratio.value, "low": ratio.low, "high": ratio.high, "rounds": rounds}
        print(json.dumps(line))


if __name__ == "__main__":
    main()
