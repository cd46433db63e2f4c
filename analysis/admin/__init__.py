"""The admin panel of the GPU managers: one module for each subject. What was measured can be read, never edited."""
