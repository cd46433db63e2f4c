"""Tables of the history page: tags, search terms, saved views; and when a run was restored."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

TAG_LENGTH, NAME_LENGTH, QUERY_LENGTH, WORD_LENGTH, SETTING_LENGTH = 40, 120, 2_000, 40, 60
TAG_PATTERN = r"^[a-z0-9][a-z0-9._:/+-]*\Z"
TAG_RULE = "A tag has lower-case letters, digits and . _ : / + - and begins with a letter or digit."


class Restorable(models.Model):
    """When a run was last restored: retention counts its age from then."""

    restored_at = models.DateTimeField(null=True, blank=True, help_text="When the run was last restored.")

    class Meta:
        abstract = True


class Tag(models.Model):
    """A short label that people put on runs: one row, however many runs have the label."""

    name = models.CharField(max_length=TAG_LENGTH, unique=True, validators=[RegexValidator(TAG_PATTERN, TAG_RULE)])

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class RunText(models.Model):
    """The search terms of a run; a migration adds the database's text index: FTS5 on SQLite, GIN on PostgreSQL."""

    run = models.OneToOneField("analysis.Run", on_delete=models.CASCADE, primary_key=True, related_name="text")
    words = models.TextField()

    def __str__(self) -> str:
        return self.words


class RunSetting(models.Model):
    """One setting of a run that lists filter on, as `mode=eval`: in the spec alone it has no index."""

    run = models.ForeignKey("analysis.Run", on_delete=models.CASCADE, related_name="setting_rows", db_index=False)
    setting = models.CharField(max_length=SETTING_LENGTH)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("setting", "run"), name="setting_once_per_run"),)
        indexes = (models.Index(fields=("run",), name="setting_of_run"),)

    def __str__(self) -> str:
        return self.setting


class SavedView(models.Model):
    """A named view of the history, stored as its query string. Everybody may open a shared one."""

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
