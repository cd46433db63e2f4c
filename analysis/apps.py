"""Configuration of the Django application. It starts no thread and no process."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AnalysisConfig(AppConfig):
    name = "analysis"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "MemoryMark"

    def ready(self) -> None:
        from analysis import checks  # noqa: F401  (registers the system checks)
        from analysis.audit.auth_signals import start_listening
        from analysis.audit.model_signals import start_tracking
        from analysis.first_rows import make_first_rows

        start_listening()
        start_tracking()
        post_migrate.connect(make_first_rows, sender=self)
