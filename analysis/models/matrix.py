"""The cells of the matrix."""

from __future__ import annotations

from django.db import models

CARD_LENGTH, SETTINGS_LENGTH = 250, 250
KEY = ("kind", "card", "model", "input_size", "precision", "optimizer", "settings")
"""The columns that identify a cell: one cell for each combination, of the newest run."""


class MatrixCell(models.Model):
    """The newest batch sizes of a model on a card, either measured or estimated.

    `runs.matrix_store` writes a cell when a run ends, and finds the next newest when that run is deleted. `card` is an
    id of the catalogue where there is one, so that measurements and estimates of a card have the same key.
    """

    run = models.ForeignKey("analysis.Run", on_delete=models.CASCADE, related_name="matrix_cells")
    answered_at = models.DateTimeField(help_text="When the run finished.")
    kind = models.CharField(max_length=10)
    card = models.CharField(max_length=CARD_LENGTH)
    card_name = models.CharField(max_length=200, help_text="Name in the catalogue, or the device's own.")
    is_cpu = models.BooleanField(default=False)
    memory_bytes = models.BigIntegerField(help_text="Memory of the card; of a CPU, its memory limit.")
    model = models.CharField(max_length=40)
    input_size = models.PositiveIntegerField()
    precision = models.CharField(max_length=10)
    optimizer = models.CharField(max_length=20)
    settings = models.CharField(
        max_length=SETTINGS_LENGTH, blank=True, help_text="Other settings that differ from their defaults."
    )
    largest_batch_size = models.PositiveIntegerField(help_text="0: not even batch size 1 fits.")
    safe_batch_size = models.PositiveIntegerField(
        null=True, help_text="Estimates only: the largest size within the margin of error."
    )
    recommended_batch_size = models.PositiveIntegerField(
        null=True, help_text="Size that a measurement recommends by its speeds; its speed was measured at this size."
    )
    with_reserve_batch_size = models.PositiveIntegerField(
        null=True, help_text="The largest size that leaves the reserve free, measured or predicted."
    )
    reserve_fraction = models.FloatField(
        null=True, help_text="Share of memory that the reserve is. Empty: unknown (before 0.5)."
    )
    samples_per_second = models.FloatField(null=True)
    headroom_bytes = models.BigIntegerField(
        null=True, help_text="Memory that the recommended size leaves free; of runs before 0.5 the largest."
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=KEY, name="matrix_cell_once"),)
        indexes = (models.Index(fields=("precision", "optimizer", "settings"), name="matrix_by_settings"),)

    def __str__(self) -> str:
        return f"{self.model} on {self.card}, {self.kind}: {self.largest_batch_size}"

    @property
    def shown_batch_size(self) -> int | None:
        """The largest size that leaves the reserve free; before 0.5 an estimate's safe one, or the largest measured."""
        if self.reserve_fraction is not None and (self.kind != "measured" or self.with_reserve_batch_size):
            return self.with_reserve_batch_size
        return self.largest_batch_size if self.kind == "measured" else self.safe_batch_size
