"""Configuration of the Django application. It starts no thread and no process."""

from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    """The portal's only application."""

    name = "analysis"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "MemoryMark"

    def ready(self) -> None:
        from analysis import checks  # noqa: F401  (registers the system checks)
        from analysis.audit.auth_signals import start_listening
        from analysis.audit.model_signals import start_tracking

        start_listening()
        start_tracking()
