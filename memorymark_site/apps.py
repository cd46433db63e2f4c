"""Configuration of other people's applications."""

from django.contrib.staticfiles.apps import StaticFilesConfig


class StaticFiles(StaticFilesConfig):
    """Of the chart library's wheel only plotly.min.js is served; the rest is left where it is."""

    ignore_patterns = (*StaticFilesConfig.ignore_patterns, "datasets", "templates", "widgetbundle.js")
