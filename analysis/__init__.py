"""The portal: devices, runs and measurements. It uses only the engine's public names."""
