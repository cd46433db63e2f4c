"""The phases of a training step, by the names that probes, traces and results give them."""

FORWARD, BACKWARD, OPTIMIZER_STEP = "forward", "backward", "optimizer_step"
