"""Configuration files of other tools, read as the settings of a training."""
