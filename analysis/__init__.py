"""The portal: devices, runs and what was measured, over the engine's public names."""
