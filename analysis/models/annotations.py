"""What exists for the history alone: tags, the terms that a text search finds, saved views, a run's return."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

TAG_LENGTH, NAME_LENGTH, QUERY_LENGTH, WORD_LENGTH = 40, 120, 2_000, 40
TAG_PATTERN = r"^[a-z0-9][a-z0-9._:/+-]*\Z"
TAG_RULE = "A tag has small letters, digits and . _ : / + - and begins with a letter or digit."


class Restorable(models.Model):
    """What retention asks of a run that came back: it is not deleted again for what it was deleted for before."""

    restored_at = models.DateTimeField(null=True, blank=True, help_text="When it was last brought back.")

    class Meta:
        abstract = True


class Tag(models.Model):
    """A short word that people put on runs. It exists once, however many runs have it."""

    name = models.CharField(max_length=TAG_LENGTH, unique=True, validators=[RegexValidator(TAG_PATTERN, TAG_RULE)])

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class SearchTerm(models.Model):
    """One word of a run's name or note: what a text search finds without reading every run."""

    run = models.ForeignKey("analysis.Run", on_delete=models.CASCADE, related_name="words", db_index=False)
    word = models.CharField(max_length=WORD_LENGTH)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "word"), name="word_once_per_run"),)
        indexes = (
            # by its beginning: PostgreSQL needs the operator class for that, SQLite ignores it
            models.Index(
                fields=("word", "run"), name="word_by_beginning", opclasses=("varchar_pattern_ops", "int8_ops")
            ),
        )

    def __str__(self) -> str:
        return self.word


class SavedView(models.Model):
    """A view of the history under a name: the query string that gives it. Shared ones are everybody's to open."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=NAME_LENGTH)
    query = models.CharField(max_length=QUERY_LENGTH, blank=True)
    is_shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name", "id")
        constraints = (models.UniqueConstraint(fields=("owner", "name"), name="saved_view_once_per_name"),)

    def __str__(self) -> str:
        return self.name
