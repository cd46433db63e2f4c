"""What is stored for the matrix."""

from __future__ import annotations

from django.db import models

CARD_LENGTH, SETTINGS_LENGTH = 250, 250
KEY = ("kind", "card", "model", "input_size", "precision", "optimizer", "settings")
"""What makes a cell: there is one of each, of the newest run."""


class MatrixCell(models.Model):
    """The newest answer to "how much of this model does this card take": of one kind, measured or estimated.

    `runs.matrix_store` writes it when a run ends, and looks for the next newest when that run is deleted. `card` is an
    id of the catalogue where there is one, so that a measured card and its estimates meet.
    """

    run = models.ForeignKey("analysis.Run", on_delete=models.CASCADE, related_name="matrix_cells")
    answered_at = models.DateTimeField(help_text="When the run finished.")
    kind = models.CharField(max_length=10)
    card = models.CharField(max_length=CARD_LENGTH)
    card_name = models.CharField(max_length=200, help_text="As the device or the catalogue names it.")
    is_cpu = models.BooleanField(default=False)
    memory_bytes = models.BigIntegerField(help_text="Of the card; of a CPU, what it was held to.")
    model = models.CharField(max_length=40)
    input_size = models.PositiveIntegerField()
    precision = models.CharField(max_length=10)
    optimizer = models.CharField(max_length=20)
    settings = models.CharField(max_length=SETTINGS_LENGTH, blank=True, help_text="The others that are no defaults.")
    largest_batch_size = models.PositiveIntegerField(help_text="0: not even one sample.")
    safe_batch_size = models.PositiveIntegerField(null=True, help_text="Of an estimate: within its margin.")
    used_batch_size = models.PositiveIntegerField(null=True, help_text="The recommended one: the speed is of it.")
    reserve_fraction = models.FloatField(
        null=True, help_text="What the recommended one leaves free, at least; empty: of before 0.5, not known."
    )
    samples_per_second = models.FloatField(null=True)
    headroom_bytes = models.BigIntegerField(null=True, help_text="What the size that is shown left of the memory.")

    class Meta:
        constraints = (models.UniqueConstraint(fields=KEY, name="matrix_cell_once"),)
        indexes = (models.Index(fields=("precision", "optimizer", "settings"), name="matrix_by_settings"),)

    def __str__(self) -> str:
        return f"{self.model} on {self.card}, {self.kind}: {self.largest_batch_size}"

    @property
    def shown_batch_size(self) -> int | None:
        """The size to use with its reserve; of before 0.5 what was shown then: the largest, of an estimate the safe."""
        if self.reserve_fraction is not None:
            return self.used_batch_size
        return self.largest_batch_size if self.kind == "measured" else self.safe_batch_size
