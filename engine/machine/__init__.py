"""The machine beneath a measurement: its memory, cards, locks and other work. Loads no torch."""
