"""Recipes that tests write code of."""

from engine.advice.recipe import recipe_of
from engine.settings.spec import RunSpec

MICRO, STEPS = 3, 2


def recipe(
    model="bert", device_kind="cpu", *, micro=MICRO, steps=STEPS, devices=1, limit=None, capacity=None, **settings
):
    made = recipe_of(
        RunSpec(model, device="auto" if device_kind == "cpu" else device_kind, **settings).to_dict(),
        micro_batch_size=micro,
        accumulation_steps=steps,
        devices=devices,
        device_kind=device_kind,
        limit_bytes=limit,
        capacity_bytes=capacity,
    )
    assert made is not None
    return made
