"""Starts a training as it is, then with changes set from outside, and prints what each start showed, as JSON."""

import json
import os
import sys
from functools import partial

from engine.facts.provenance.read import run_facts
from engine.machine.execution import Execution
from engine.machine.scratch import scratch_folder
from engine.trainings.script.faster.spec import OwnRaceSpec
from engine.trainings.script.faster.starts import OTHER_SEED, Starts
from engine.trainings.script.faster.variants import VARIANTS
from engine.trainings.script.notes.file_changes import WrittenFiles
from engine.trainings.script.start.command import begin_command
from engine.trainings.script.start.held import HeldStarts

changes, command = sys.argv[1].split(","), tuple(sys.argv[2:])
spec = OwnRaceSpec(command, device="cuda:0", current_batch_size=8)
with scratch_folder() as cache_folder:
    execution = Execution(lambda _: None, 900.0)
    files = WrittenFiles(os.getcwd(), execution.log)
    starts = Starts(
        spec=spec,
        execution=execution,
        begin=partial(begin_command, spec),
        started_as=run_facts(),
        cache_folder=cache_folder,
        files=files,
        waiting=HeldStarts(files),
    )
    today = starts.first()
    changed = starts.trial(changes)
if starts.facts.draws_masks:
    starts.trial((), mask_seed=OTHER_SEED)
reasons = {each.name: each.why_not(starts.facts) for each in VARIANTS}
memory = {"today": today.memory_bytes, "changed": changed.memory_bytes}
draws = starts.facts.any_model("draws")
print(json.dumps({"kind": starts.device.kind, "memory": memory, "reasons": reasons, "draws": draws}))
