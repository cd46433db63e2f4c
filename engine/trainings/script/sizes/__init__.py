"""Which batch size to start next: by memory, by the sizes that the script takes, by the end of its data."""
