"""What people add to runs, and what lists find them by: tags, search terms, saved views, notes on steps, links."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

TAG_LENGTH, NAME_LENGTH, QUERY_LENGTH, WORD_LENGTH, SETTING_LENGTH, STEP_NOTE_LENGTH = 40, 120, 2_000, 40, 60, 500
TAG_PATTERN = r"^[a-z0-9][a-z0-9._:/+-]*\Z"
TAG_RULE = "A tag has lower-case letters, digits and . _ : / + - and begins with a letter or digit."


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


class TrendAcknowledgement(models.Model):
    """A person's note on a step of a trend. The step is the one that begins with `run`."""

    run = models.ForeignKey(
        "analysis.Run", on_delete=models.CASCADE, related_name="trend_acknowledgements", db_index=False
    )
    metric = models.CharField(max_length=20)
    note = models.CharField(max_length=STEP_NOTE_LENGTH)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    acknowledged_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("run", "metric"), name="trend_step_acknowledged_once"),)

    def __str__(self) -> str:
        return f"{self.metric} from run {self.run_id}: {self.note}"


class ShareLinkQuerySet(models.QuerySet["ShareLink"]):
    def live(self) -> ShareLinkQuerySet:
        """Keep links neither withdrawn nor ended by the database's clock, of runs that are not deleted."""
        return self.filter(Q(ends_at=None) | Q(ends_at__gt=Now()), withdrawn_at=None, run__deleted_at=None)


class ShareLink(models.Model):
    """A link that shows a result without a login until it ends or is withdrawn; only its secret's digest is stored."""

    run = models.ForeignKey("analysis.Run", on_delete=models.CASCADE, related_name="share_links")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="share_links"
    )
    prefix = models.CharField(max_length=12, help_text="First characters of the secret, to distinguish links.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField(null=True, blank=True, help_text="Empty: valid until it is withdrawn.")
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return f"{self.prefix}… of run {self.run_id}"

    @property
    def has_ended(self) -> bool:
        return self.ends_at is not None and self.ends_at <= timezone.now()
