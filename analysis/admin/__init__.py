"""The admin panel of the GPU managers: one module for each subject. Measurements are read-only."""
